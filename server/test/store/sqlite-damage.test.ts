import assert from 'node:assert/strict';
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Tally, TallyQuery } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { SqliteOptions } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { RollFailure, Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder, totalOf } from '../support/service.ts';
import { runSql } from '../support/store-place.ts';

function open(path: string, options: Partial<SqliteOptions> = {}): Promise<Store> {
  return openSqliteStore({ path, clock: { kind: 'system' }, role: 'server', ...options });
}

async function append(store: Store, teamId: string, fields: readonly object[]): Promise<void> {
  const drafts = fields.map((own) => draftTrace({ model: 'm', ...own }));
  const [outcome] = await store.append([{ teamId, drafts }]);
  assert.equal(outcome?.kind, 'stored');
}

/** Overwrites the last page of a table that holds rows. */
function damagePageOf(path: string, table: string): void {
  let at: { pageno: number; pgsize: number };
  {
    using db = new DatabaseSync(path);
    db.exec('pragma wal_checkpoint(truncate)');
    const leaves = db
      .prepare("select pageno, pgsize from dbstat where name = ? and pagetype = 'leaf'")
      .all(table);
    at = leaves.at(-1) as unknown as typeof at;
  }
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(at.pgsize, 0xff), 0, at.pgsize, (at.pageno - 1) * at.pgsize);
  closeSync(file);
}

const byModel: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };

async function listOf(store: Store, teamId: string): Promise<Tally[]> {
  const { first, rest } = await store.tallies(teamId, byModel);
  const all = [...first];
  for await (const chunk of rest ?? []) all.push(...chunk);
  return all;
}

test('damaged sums fail the question that needs them, not the process', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'sums.db');
  const store = await open(path, { rolling: 'manual' });
  try {
    const [broken, whole] = [await store.ensureTeam('a', 1), await store.ensureTeam('b', 1)];
    const models = Array.from({ length: 1_100 }, (_, i) => ({ model: `m${i}`, latency_ms: i }));
    for (const { team } of [broken, whole]) {
      await append(store, team.id, models);
      await store.roll(team.id, 2_000);
    }
    const ofOne = 'team_no = 1 and set_no = 1 and grain = 0';
    for (const which of ['max', 'min']) {
      await runSql(
        { kind: 'sqlite', path: rollupPathOf(path) },
        `update rollups set latencies = x'02' where ${ofOne} and group_no = (
          select ${which}(group_no) from rollups where ${ofOne})`,
      );
      await assert.rejects(listOf(store, broken.team.id), (error: Error) => {
        assert.match(`${error.message} ${String(error.cause)}`, /a stored number is cut off/);
        return true;
      });
      assert.equal((await listOf(store, whole.team.id)).length, 1_100);
    }
  } finally {
    await store.close();
    folder.remove();
  }
});

test('a name with thousands of environments is one name, with the sums of all of them', async () => {
  const folder = temporaryFolder();
  const store = await open(join(folder.path, 'environments.db'), { rolling: 'manual' });
  try {
    const { team } = await store.ensureTeam('t', 1);
    const fields = Array.from({ length: 3_000 }, (_, i) => ({
      model: i % 3 === 0 ? 'second' : 'first',
      environment: `pod ${i}`,
      latency_ms: i,
      status: i % 2 === 0 ? 'success' : 'error',
    }));
    await append(store, team.id, fields);
    await store.roll(team.id, 2_500);
    const sums = (await listOf(store, team.id)).map(({ group, measures }) => {
      const { calls, errors, latency_sum, latencies } = measures;
      const counted = latencies.values().reduce((sum, count) => sum + count, 0);
      return [group[0], calls, errors, Number(latency_sum), counted];
    });
    const expected = ['first', 'second'].map((model) => {
      const own = fields.filter((trace) => trace.model === model);
      const latency = own.reduce((sum, { latency_ms }) => sum + latency_ms, 0);
      const errors = own.filter(({ status }) => status === 'error').length;
      return [model, own.length, errors, latency, own.length];
    });
    assert.deepEqual(sums, expected);
  } finally {
    await store.close();
    folder.remove();
  }
});

test('if the rollup file is damaged, writes go on, answers are complete, it is reported, and the next server builds the file again', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'marks.db');
  const first = await open(path);
  const { team } = await first.ensureTeam('t', 1);
  await append(first, team.id, [{}]);
  await first.close();
  damagePageOf(rollupPathOf(path), 'roll_marks');
  const failures: RollFailure[] = [];
  const store = await open(path, { onRollFailed: (failure) => void failures.push(failure) });
  try {
    await eventually('a reported failure', 120_000, () => failures.length > 0);
    assert.match(failures[0]?.reason ?? '', /malformed.* built again at the next start/);
    for (let i = 0; i < 3; i++) await append(store, team.id, [{ model: `after ${i}` }]);
    const page = await store.page(team.id, { page: 1, limit: 10, omit: new Set() });
    assert.equal(page.total, 4);
    assert.equal((await totalOf(store, team.id)).calls, 4);
    assert.equal((await listOf(store, team.id)).length, 4);
    assert.equal(failures.length, 1);
  } finally {
    await store.close();
  }
  const next = await open(path);
  try {
    await eventually('rollups', 120_000, async () => (await next.marks(team.id)).seq === 4);
    assert.equal((await totalOf(next, team.id)).calls, 4);
    assert.deepEqual(await verifyTeam(next, team.id), { traces: 4, differences: [] });
  } finally {
    await next.close();
    folder.remove();
  }
});
