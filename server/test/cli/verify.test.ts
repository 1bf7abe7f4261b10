import assert from 'node:assert/strict';
import { closeSync, openSync, writeSync } from 'node:fs';
import { describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import { withTool } from '../guarantees/crash-lab.ts';
import { eventually } from '../support/eventually.ts';
import { rollUp } from '../support/roll-up.ts';
import { assertNoStack, assertRefused, postTrace, startServer } from './helpers.ts';
import type { NewKeyJson } from './helpers.ts';
import {
  change,
  damage,
  damages,
  inflict,
  middle,
  newCleanStore,
  repairable,
  report,
  rows,
  total,
  voidMarks,
} from './verify-lab.ts';

const { clean, copyOfClean } = await newCleanStore();

describe('verify finds', { concurrency: 3 }, () => {
  for (const [name, [harm, says]] of Object.entries({ ...damages, ...repairable })) {
    test(name, async () => {
      const tool = copyOfClean();
      inflict(tool, harm);
      const { ok, differences } = await report(tool);
      assert.equal(ok, false);
      assert.match(differences.join('\n'), says);
    });
  }

  test('a trace that is missing from an index', async () => {
    const tool = copyOfClean();
    // The index is taken out of the schema while the trace gets another id, and put back: it still holds the old one.
    damage(tool, (db) => {
      db.exec('pragma writable_schema = on');
      db.exec("create table kept as select * from sqlite_schema where name = 'traces_by_id'");
      change(db, "delete from sqlite_schema where name = 'traces_by_id'");
    });
    damage(tool, (db) => {
      db.exec('pragma writable_schema = on');
      change(db, `update traces set id = randomblob(16) where ${middle}`);
      change(db, 'insert into sqlite_schema select * from kept');
      db.exec('drop table kept');
    });
    const { ok, differences } = await report(tool);
    assert.equal(ok, false);
    assert.match(differences.join('\n'), /^storage: row \d+ missing from index traces_by_id$/m);
  });

  for (const table of ['traces', 'rollups', 'team_counters']) {
    test(`a damaged page of ${table}, and says so without a stack trace`, async () => {
      const tool = copyOfClean();
      let offset = 0;
      damage(tool, (db) => {
        const schema = table === 'rollups' ? 'rollup_file.sqlite_schema' : 'sqlite_schema';
        const row = db.prepare(`select rootpage from ${schema} where name = ?`).get(table);
        offset = (Number(row?.['rootpage']) - 1) * 4096;
      });
      assert.ok(offset > 0);
      const path = table === 'rollups' ? rollupPathOf(tool.path) : tool.path;
      const file = openSync(path, 'r+');
      writeSync(file, Buffer.alloc(64, 0xff), 0, 64, offset);
      closeSync(file);
      const result = await tool.run('verify');
      assertNoStack(result);
      assert.equal(result.code, 1);
      assert.match(`${result.stdout}${result.stderr}`, /malformed|damaged|corrupt|btreeInitPage/i);
    });
  }
});

test('verify passes a clean store, in words and as JSON', async () => {
  const words = await clean.run('verify');
  assert.deepEqual(words, {
    code: 0,
    stdout: 'Everything is correct: 2 teams, 120 traces.\n',
    stderr: '',
  });
  assert.deepEqual(await report(clean), { ok: true, teams: 2, traces: 120, differences: [] });
});

describe('verify passes rollups that no answer uses', { concurrency: 3 }, () => {
  for (const [name, harm] of Object.entries(voidMarks)) {
    test(`because of ${name}, and they are built again`, async () => {
      const tool = copyOfClean();
      inflict(tool, harm);
      const right = { ok: true, teams: 2, traces: 2 * rows, differences: [] };
      assert.deepEqual(await report(tool), right);
      await withTool(tool.path, async (store) => {
        const { id } =
          (await store.teams(0)).find((team) => team.name === 'alpha') ?? assert.fail();
        await rollUp(store, [id]);
      });
      assert.deepEqual(await report(tool), right);
      await withTool(tool.path, async (store) => {
        for (const { id } of await store.teams(0)) {
          const { generation, seq } = await store.marks(id);
          assert.deepEqual([generation > 0, seq], [true, rows]);
        }
      });
    });
  }
});

test('verify --team looks at that team only', async () => {
  const tool = copyOfClean();
  damage(tool, (db) => change(db, `update rollups set calls = calls + 1 where ${total}`));
  assert.deepEqual(await report(tool, '--team', 'beta'), {
    ok: true,
    teams: 1,
    traces: rows,
    differences: [],
  });
  const alpha = await report(tool, '--team', 'alpha');
  assert.deepEqual([alpha.ok, alpha.teams, alpha.traces], [false, 1, rows]);
  const words = await tool.run('verify', '--team', 'alpha');
  assert.equal(words.code, 1);
  assert.match(words.stdout, /calls is \d+, but the traces add up to \d+\n.*1 difference/s);
  assertRefused(await tool.run('verify', '--team', 'gamma'), 1, /no team "gamma"/);
});

test('verify passes again and again while traces are written', async (t) => {
  const tool = copyOfClean();
  const server = await startServer(t, tool);
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'alpha');
  let isWriting = true;
  let stored = 0;
  const writers = Array.from({ length: 4 }, async () => {
    while (isWriting) {
      const { status } = await postTrace(server.url, key, { cost_usd: 0.0001, latency_ms: 3 });
      assert.equal(status, 201);
      stored += 1;
    }
  });
  const seen: number[] = [];
  for (let i = 0; i < 3; i++) {
    const before = stored;
    await eventually('a write', 120_000, () => stored > before, 5);
    const { ok, traces, differences } = await report(tool);
    assert.ok(ok, differences.join('\n'));
    seen.push(traces);
  }
  isWriting = false;
  await Promise.all(writers);
  assert.ok((seen[0] ?? 0) < (seen[2] ?? 0), `nothing was written meanwhile: ${seen.join(', ')}`);
  assert.deepEqual(await report(tool), {
    ok: true,
    teams: 2,
    traces: 2 * rows + stored,
    differences: [],
  });
});

test('verify lists the first differences of a kind and counts the others', async () => {
  const tool = copyOfClean();
  damage(tool, (db) => change(db, 'delete from rollups where team_no = 1'));
  const { differences } = await report(tool);
  assert.equal(differences.length, limits.findingsListMax + 1);
  assert.match(
    differences.at(-1) ?? '',
    /^team alpha: \d+ more differences of rollups and lookups$/,
  );
});
