import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { overviewQuery } from '../../src/core/analytics.ts';
import type { Tally } from '../../src/core/query.ts';
import { OperatorError } from '../../src/errors.ts';
import { readMigrations } from '../../src/store/sqlite/migrate.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { UpgradeProgress } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { groupsOf, talliesOf, temporaryFolder } from '../support/service.ts';

const fixtures = new URL('../guarantees/fixtures/', import.meta.url);
const child = fileURLToPath(new URL('upgrade-until-killed.ts', import.meta.url));
const copies = 20;

/** A file of the last schema that had its sums in the writing transaction, with 4,000 traces. */
function oldFile(folder: string): { path: string; teamId: string; total: number } {
  const { team, total } = JSON.parse(readFileSync(new URL('schema-4.json', fixtures), 'utf8'));
  const path = join(folder, 'old.db');
  copyFileSync(new URL('schema-4.db', fixtures), path);
  using db = new DatabaseSync(path);
  const columns = db
    .prepare("select name from pragma_table_info('traces') where name not in ('key', 'id')")
    .all()
    .map(({ name }) => name)
    .join(', ');
  const copy = db.prepare(
    `insert into traces (key, id, ${columns})
     select key + ?, cast(substr(id, 1, 8) || randomblob(8) as blob), ${columns} from traces where (key & 0xffffffffff) <= ?`,
  );
  for (let i = 1; i < copies; i++) copy.run(i * total, total);
  db.exec(`update team_counters set last_seq = last_seq * ${copies}`);
  const measures = ['calls', 'errors', 'latency_sum', 'latency_count', 'prompt_tokens'];
  const sums = [...measures, 'completion_tokens', 'cost_micros', 'cost_picos'];
  db.exec(`update rollups set ${sums.map((name) => `${name} = ${name} * ${copies}`).join(', ')}`);
  return { path, teamId: team, total: total * copies };
}

/** The sums of the old table: dimension, day and name, then the sums. */
function oldSums(path: string): unknown[] {
  using db = new DatabaseSync(path);
  const read = db.prepare(`
    select dimension, day, key, calls, errors, latency_sum, latency_count, prompt_tokens,
      completion_tokens, cost_micros, cost_picos from rollups order by dimension, day, key`);
  read.setReadBigInts(true);
  read.setReturnArrays(true);
  return (read.all() as unknown as bigint[][]).map((row) => {
    const [dimension, day, key, ...rest] = row;
    const [micros = 0n, picos = 0n] = rest.slice(-2);
    return [dimension, day, key, ...rest.slice(0, -2), micros * 1_000_000n + picos];
  });
}

function sumsOf(dimension: bigint, day: bigint, { group, measures }: Tally): unknown[] {
  const { calls, errors, latency_sum, latency_count, prompt_tokens, completion_tokens } = measures;
  const counts = [BigInt(calls), BigInt(errors), latency_sum, BigInt(latency_count)];
  const sums = [...counts, prompt_tokens, completion_tokens, measures.cost_picos];
  return [dimension, day, group[0] ?? '', ...sums];
}

const open = (path: string, onUpgrade: (progress: UpgradeProgress) => void = () => {}) =>
  openSqliteStore({ path, clock: { kind: 'system' }, role: 'server', onUpgrade });

test('sums are the same to the last digit before and after an upgrade, and progress is reported', async () => {
  const folder = temporaryFolder();
  const { path, teamId, total } = oldFile(folder.path);
  const before = oldSums(path);
  const steps: UpgradeProgress[] = [];
  const store = await open(path, (progress) => void steps.push(progress));
  try {
    const after: unknown[] = [];
    const daily = await talliesOf(store, teamId, { ...overviewQuery, interval: 'day' });
    for (const tally of await talliesOf(store, teamId, overviewQuery)) {
      after.push(sumsOf(0n, -1n, tally));
    }
    for (const tally of daily) {
      after.push(sumsOf(0n, BigInt((tally.startUs ?? 0) / 86_400_000_000), tally));
    }
    for (const [i, field] of (['model', 'feature_name', 'user_identifier'] as const).entries()) {
      for (const tally of await groupsOf(store, teamId, field)) {
        after.push(sumsOf(BigInt(i + 1), -1n, tally));
      }
    }
    const name = (row: unknown) => String((row as unknown[]).slice(0, 3));
    const byName = (a: unknown, b: unknown) => (name(a) < name(b) ? -1 : 1);
    const kept = new Set(after.map(name));
    assert.ok(kept.size > 10);
    assert.deepEqual(after.sort(byName), before.filter((row) => kept.has(name(row))).sort(byName));
    // Sums of single days are kept for the total; the others were never read.
    assert.ok(before.every((row) => kept.has(name(row)) || !name(row).includes(',-1,')));
    assert.deepEqual(await verifyTeam(store, teamId), { traces: total, differences: [] });
    assert.deepEqual(await store.checkStorage(), []);
    assert.deepEqual(steps.filter(({ step }) => step === 'moving traces').at(-1)?.done, total);
    assert.deepEqual(steps.at(-1), { step: 'adding up', done: 2 * total, total: 2 * total });
    assert.deepEqual((await store.marks(teamId)).rolledSeq, { hot: total, wide: total });
  } finally {
    await store.close();
    folder.remove();
  }
});

test('an upgrade that is killed after any step continues with the next start', async () => {
  const folder = temporaryFolder();
  try {
    const { path, teamId, total } = oldFile(folder.path);
    let kills = 0;
    for (let steps = 1; ; steps++) {
      // Each start comes one step further than the last.
      const { signal, status, stderr } = spawnSync(process.execPath, [child, path, '1'], {
        encoding: 'utf8',
        timeout: 60_000,
      });
      if (status === 0) break;
      assert.equal(signal, 'SIGKILL', stderr);
      kills += 1;
      assert.ok(steps < 50, 'the upgrade makes no progress');
      using db = new DatabaseSync(path, { readOnly: true });
      // An older version would refuse the file from here on.
      assert.equal(
        db.prepare('pragma user_version').get()?.['user_version'],
        readMigrations().length,
      );
    }
    assert.ok(kills >= 5, `only ${kills} steps`);
    const store = await open(path);
    assert.deepEqual(await verifyTeam(store, teamId), { traces: total, differences: [] });
    assert.deepEqual(await store.checkStorage(), []);
    await store.close();
  } finally {
    folder.remove();
  }
});

test('no server may use a file while a command upgrades it', async () => {
  const folder = temporaryFolder();
  try {
    const { path } = oldFile(folder.path);
    const tries: Promise<unknown>[] = [];
    const store = await openSqliteStore({
      path,
      clock: { kind: 'system' },
      role: 'tool',
      onUpgrade() {
        if (tries.length === 0) tries.push(open(path).catch((error: unknown) => error));
      },
    });
    const [refused] = await Promise.all(tries);
    await store.close();
    assert.ok(refused instanceof OperatorError);
    assert.match(refused.message, /Another TraceTally server/);
  } finally {
    folder.remove();
  }
});

test('a prepared statement of an older version fails instead of writing the old way', async () => {
  const folder = temporaryFolder();
  try {
    const { path } = oldFile(folder.path);
    using old = new DatabaseSync(path);
    const insert = old.prepare(
      `insert into traces (key, id, created_at_us, model, is_error, zstd_mask) values (1, x'00', 1, 'm', 0, 0)`,
    );
    await (await open(path)).close();
    assert.throws(() => insert.run(), /no column named zstd_mask/);
  } finally {
    folder.remove();
  }
});
