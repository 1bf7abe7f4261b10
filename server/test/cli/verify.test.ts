import assert from 'node:assert/strict';
import { closeSync, copyFileSync, existsSync, openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { traceColumns } from '../../src/store/trace-rows.ts';
import {
  assertNoStack,
  assertRefused,
  postTrace,
  startServer,
  toolInFolder,
  toolOn,
} from './helpers.ts';
import type { NewKeyJson, Tool } from './helpers.ts';

interface Report {
  ok: boolean;
  teams: number;
  traces: number;
  differences: string[];
}

const rows = 60;

/** Two teams with 60 traces each over three days. Every test damages its own copy. */
const clean = toolInFolder({ after });
for (const team of ['alpha', 'beta']) {
  await clean.json('demo', '--count', String(rows), '--days', '3', '--team', team);
}
assert.ok(!existsSync(`${clean.path}-wal`), 'the file alone does not hold everything');

let copies = 0;
function copyOfClean(): Tool {
  const path = `${clean.path}.copy-${++copies}`;
  copyFileSync(clean.path, path);
  return toolOn(path);
}

function damage(tool: Tool, harm: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(tool.path, { enableForeignKeyConstraints: false, defensive: false });
  harm(db);
  db.close();
}

/** Runs one statement that must change something, or the test would prove nothing. */
function change(db: DatabaseSync, sql: string): void {
  assert.ok(Number(db.prepare(sql).run().changes) > 0, `nothing was changed by: ${sql}`);
}

async function report(tool: Tool, ...args: string[]): Promise<Report> {
  const result = await tool.run('verify', '--json', ...args);
  assertNoStack(result);
  const parsed = JSON.parse(result.stdout) as Report;
  assert.equal(result.code, parsed.ok ? 0 : 1);
  assert.equal(parsed.ok, parsed.differences.length === 0);
  return parsed;
}

// Of the team alpha, which has the number 1: the trace in the middle, the last one, and one row of sums.
const middle = `key = (1 << 40 | ${rows / 2})`;
const last = `key = (1 << 40 | ${rows})`;
const total = "team_no = 1 and dimension = 0 and day = -1 and key = ''";
const copied = traceColumns.replace(/^id, /, '');
const copyOfLast = `insert into traces (key, id, ${copied})
  select key + 1, randomblob(16), ${copied} from traces where ${last}`;
const addOne = (column: string) => `update rollups set ${column} = ${column} + 1 where ${total}`;
const extraRow = (teamNo: number, calls: number) =>
  `insert into rollups values (${teamNo}, 1, -1, 'no-such-model', ${calls}, 0, 0, 0, 0, 0, 0, 0)`;

/** The damage, and what verify must report. */
const damages: Record<string, [sql: string, says: RegExp]> = {
  'a trace deleted in the middle': [
    `delete from traces where ${middle}`,
    /^team alpha: sequence: expected trace 30, found 31$/m,
  ],
  'the last trace deleted': [
    `delete from traces where ${last}`,
    /^team alpha: counter: last sequence number is 60, but the last trace has 59$/m,
  ],
  'a trace under a later number': [
    `update traces set key = key + 1 where ${last}`,
    /^team alpha: sequence: expected trace 60, found 61$/m,
  ],
  'a trace that is there twice': [
    copyOfLast,
    /^team alpha: counter: last sequence number is 60, but the last trace has 61$/m,
  ],
  'a counter that is one ahead': [
    'update team_counters set last_seq = last_seq + 1 where team_no = 1',
    /^team alpha: counter: last sequence number is 61, but the last trace has 60$/m,
  ],
  'a counter that is one behind': [
    'update team_counters set last_seq = last_seq - 1 where team_no = 1',
    /^team alpha: counter: last sequence number is 59, but the last trace has 60$/m,
  ],
  'a counter that begins late': [
    'update team_counters set first_seq = 2 where team_no = 1',
    /^team alpha: sequence: expected trace 2, found 1$/m,
  ],
  'a counter with another last time': [
    'update team_counters set last_created_at_us = last_created_at_us + 1 where team_no = 1',
    /^team alpha: counter: last time is \d+, but the time of the last trace is \d+$/m,
  ],
  'a counter that is gone': [
    'delete from team_counters where team_no = 1',
    /^team alpha: counter: last sequence number is 0, but the last trace has 60$/m,
  ],
  'one call too many': [
    addOne('calls'),
    /rollup 0\/-1\/: calls is 61, but the traces add up to 60$/m,
  ],
  'one error too many': [addOne('errors'), /rollup 0\/-1\/: errors is \d+, but the traces/m],
  'one ms of latency too many': [
    addOne('latency_sum'),
    /0\/-1\/: latency_sum is \d+, but the traces/m,
  ],
  'one latency too many': [
    addOne('latency_count'),
    /: latency_count is 61, but the traces add up to 60$/m,
  ],
  'one prompt token too many': [addOne('prompt_tokens'), /: prompt_tokens is \d+, but the traces/m],
  'one output token too many': [addOne('completion_tokens'), /: completion_tokens is \d+, but/m],
  'one micro-dollar too many': [
    addOne('cost_micros'),
    /: cost_micros is \d+, but the traces add up to/m,
  ],
  'one pico-dollar too many': [
    addOne('cost_picos'),
    /: cost_picos is \d+, but the traces add up to/m,
  ],
  'a row of sums deleted': [
    `delete from rollups where ${total}`,
    /^team alpha: rollup 0\/-1\/: missing$/m,
  ],
  'a row of sums without traces': [
    extraRow(1, 1),
    /^team alpha: rollup 1\/-1\/no-such-model: calls is 1, but the traces add up to 0$/m,
  ],
  // It would show in by-model as a model with no calls.
  'a row of zeros without traces': [extraRow(1, 0), /^team alpha: rollup 1\/-1\/no-such-model: /m],
  'the cost of a trace changed': [
    `update traces set cost_usd = cost_usd + 0.000001 where ${middle}`,
    /^team alpha: rollup 0\/-1\/: cost_micros is \d+, but the traces add up to \d+$/m,
  ],
  'a trace moved to another day': [
    `update traces set created_at_us = created_at_us - 10 * 86400000000 where ${middle}`,
    /^team alpha: rollup 0\/\d+\/: missing$/m,
  ],
  'the model of a trace changed': [
    `update traces set model = 'other' where ${middle}`,
    /^team alpha: rollup 1\/-1\/other: missing$/m,
  ],
  'the user of a trace changed': [
    `update traces set user_identifier = 'other' where ${middle}`,
    /^team alpha: rollup 3\/-1\/other: missing$/m,
  ],
  'an input that cannot be decompressed': [
    `update traces set zstd_mask = 1 where ${middle} and input is not null`,
    /^team alpha: trace 30 \([0-9a-f-]{36}\): damaged input$/m,
  ],
  'an output that is no UTF-8': [
    `update traces set output = x'ff' where ${middle}`,
    /^team alpha: trace 30 \([0-9a-f-]{36}\): damaged output$/m,
  ],
  'sums of a team that does not exist': [
    extraRow(77, 1),
    /^storage: rows of a team that does not exist: team number 77$/m,
  ],
  'a trace of a team that does not exist': [
    copyOfLast.replace('key + 1', '77 << 40 | 1'),
    /^storage: rows of a team that does not exist: team number 77$/m,
  ],
};

describe('verify finds', { concurrency: 3 }, () => {
  for (const [name, [sql, says]] of Object.entries(damages)) {
    test(name, async () => {
      const tool = copyOfClean();
      damage(tool, (db) => change(db, sql));
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
        const row = db.prepare('select rootpage from sqlite_schema where name = ?').get(table);
        offset = (Number(row?.['rootpage']) - 1) * 4096;
      });
      assert.ok(offset > 0);
      const file = openSync(tool.path, 'r+');
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

test('verify --team looks at that team only', async () => {
  const tool = copyOfClean();
  damage(tool, (db) => change(db, addOne('calls')));
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
  assert.match(words.stdout, /calls is 61, but the traces add up to 60\n.*1 difference/s);
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
