import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { assertSameTraces, copyAll, copyArgs, withStoreAt } from '../cli/copy-lab.ts';
import { assertRefused } from '../cli/helpers.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { eventually } from '../support/eventually.ts';
import { runCli, spawnCli } from '../support/cli.ts';
import { usePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';
import { rounds } from './crash-lab.ts';

const postgres = usePostgres();
const folder = temporaryFolder();
after(() => folder.remove());

const teams = 3;
const tracesOfTeam = 4000;
const total = teams * tracesOfTeam;

let filling: Promise<string> | null = null;
/** A file with some teams, a key each, and 12,000 traces, some of them compressed. */
const source = (): Promise<string> =>
  (filling ??= fill(`sqlite:${join(folder.path, 'source.db')}`));

async function fill(place: string): Promise<string> {
  await withStoreAt(place, async (store) => {
    for (let no = 0; no < teams; no++) {
      const { team } = await store.ensureTeam(`team ${no}`, 1);
      const wishes = { name: null, scope: 'full', nowUs: 1, expiresAtUs: null } as const;
      await store.createKey(team.id, makeKey(wishes).record);
      for (let made = 0; made < tracesOfTeam; made += 1000) {
        const drafts = Array.from({ length: 1000 }, (_, i) =>
          draftTrace({
            model: `m${i % 5}`,
            user_identifier: `${no}.${made + i}`,
            input: 'again '.repeat(i % 50 === 0 ? 500 : 5),
            cost_usd: i / 1e6,
          }),
        );
        await store.append([{ teamId: team.id, drafts }]);
      }
    }
  });
  return place;
}

/** Kills a copy some time after it has begun to copy; returns how many traces the target has then. */
async function killCopy(from: string, to: string, afterMs: number): Promise<number> {
  return withStoreAt(to, async (store) => {
    const count = async () => (await store.teams(0)).reduce((sum, { traces }) => sum + traces, 0);
    const before = await count();
    const child = spawnCli(copyArgs(from, to));
    const ended = new Promise((resolve) => child.once('close', resolve));
    const hasBegun = async () => (await count()) > before;
    await eventually('copied traces', 120_000, hasBegun, 5);
    await sleep(afterMs);
    child.kill('SIGKILL');
    await ended;
    const traces = await count();
    const keys = await store.keys(null);
    if (traces < total) assert.deepEqual(keys, [], 'no key works on an incomplete copy');
    return traces;
  });
}

/** It continued where the killed one ended; PostgreSQL may have finished one more transaction after its client was dead. */
function assertWentOn(copied: number, before: number): void {
  const left = total - before;
  assert.ok(copied === left || copied === left - limits.moveRowsMax, `${copied} of ${left}`);
}

/** Kills copies at random moments until it has been done a few times, then lets one end. */
async function copyWithKills(t: TestContext, from: string, to: string): Promise<void> {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  const places: number[] = [];
  while (places.length < rounds(2) && (places.at(-1) ?? 0) < total) {
    places.push(await killCopy(from, to, random() * 100));
  }
  t.diagnostic(`seed ${seed}: killed at ${places.join(', ')} of ${total}`);
  assert.ok((places[0] ?? total) < total, 'none was killed before the end');
  const report = await copyAll(from, to);
  assert.equal(report.traces, total);
  assertWentOn(report.copied, places.at(-1) ?? 0);
  assert.equal(report.keys, teams);
}

test('copies into PostgreSQL and back that are killed repeatedly end with every trace exactly once', async (t) => {
  const stores = [await source(), await postgres.createDatabase(), `sqlite:${folder.path}/new.db`];
  for (const [i, target] of stores.slice(1).entries()) {
    await copyWithKills(t, stores[i] ?? '', target);
    assert.equal(await assertSameTraces(await source(), target), total);
  }
});

test('a copy that loses its connection ends with a clear message, and continues when it is run again', async (t) => {
  const target = await postgres.createDatabase();
  const before = await killCopy(await source(), target, 0);
  // A lock on what every transaction needs first: the copy waits inside a transaction when its connection is cut.
  const holder = new pg.Client({ connectionString: target });
  await holder.connect();
  t.after(() => holder.end());
  await holder.query('begin');
  await holder.query('lock table team_counters in exclusive mode');
  const running = runCli(copyArgs(await source(), target));
  const waiting = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const [found] = await eventually('a copy that waits', 120_000, async () => {
    const rows = await postgres.sql(target, waiting);
    return rows.length > 0 && rows;
  });
  await postgres.sql(target, 'select pg_terminate_backend($1)', [found?.['pid']]);
  assertRefused(await running, 1, /^The store is not responding\. \(.*terminat.*\)\n$/);
  await holder.query('rollback');
  assertWentOn((await copyAll(await source(), target)).copied, before);
  assert.equal(await assertSameTraces(await source(), target), total);
});
