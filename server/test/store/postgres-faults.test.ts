import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { draftTrace } from '../../src/core/trace.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { startTestService } from '../support/service.ts';
import { startCommitProxy } from './commit-proxy.ts';
import type { Mishap } from './commit-proxy.ts';

const postgres = usePostgres();

const open = (url: string) => openPostgresStore({ url, clock: { kind: 'system' }, role: 'server' });

interface Load {
  /** What was acknowledged, by the unique name of each trace. */
  stored: Map<string, { teamId: string; id: string }>;
  refused: Map<string, string>;
  stop(): Promise<void>;
}

/** Writers that run until they are stopped. Half of what they write belongs to one team, the rest to all of them. */
function startLoad(
  stores: readonly Store[],
  teams: readonly string[],
  random: () => number,
  writersPerStore = 6,
): Load {
  const stored: Load['stored'] = new Map();
  const refused: Load['refused'] = new Map();
  let isOver = false;
  let made = 0;
  async function writer(store: Store): Promise<void> {
    while (!isOver) {
      const writes = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
        const teamId = teams[random() < 0.5 ? 0 : Math.floor(random() * teams.length)];
        const names = Array.from({ length: 1 + (made % 3) }, () => `trace ${++made}`);
        const drafts = names.map((name) =>
          draftTrace({
            model: 'm',
            feature_name: `f${made % 5}`,
            cost_usd: 0.1,
            user_identifier: name,
          }),
        );
        return { teamId: teamId ?? '', names, drafts };
      });
      const outcomes = await store.append(writes);
      assert.equal(outcomes.length, writes.length);
      for (const [i, { teamId, names }] of writes.entries()) {
        const outcome = outcomes[i] ?? assert.fail('no outcome');
        for (const [n, name] of names.entries()) {
          if (outcome.kind === 'stored') {
            stored.set(name, { teamId, id: outcome.stamps[n]?.id ?? '' });
          } else {
            refused.set(name, outcome.kind === 'failed' ? outcome.reason : outcome.kind);
          }
        }
      }
      // A database that is down refuses at once.
      if (outcomes.some(({ kind }) => kind === 'failed')) await delay(20);
    }
  }
  const writers = stores.flatMap((store) =>
    Array.from({ length: writersPerStore }, () => writer(store)),
  );
  return {
    stored,
    refused,
    async stop() {
      isOver = true;
      await Promise.all(writers);
    },
  };
}

/** Nothing acknowledged is lost, nothing is stored twice, nothing that failed for certain is stored, and the rollups are right. */
async function check(
  url: string,
  { stored, refused }: Load,
  teams: readonly string[],
): Promise<void> {
  const rows = await postgres.sql(url, 'select user_identifier as name, team_id, id from traces');
  const found = new Map(rows.map(({ name, team_id: teamId, id }) => [name, { teamId, id }]));
  assert.equal(found.size, rows.length, 'some are stored twice');
  for (const [name, place] of stored) assert.deepEqual(found.get(name), place);
  for (const [name, reason] of refused) {
    if (!reason.includes('not known')) assert.equal(found.get(name), undefined, reason);
  }
  const store = await open(url);
  for (const teamId of teams) assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
  assert.deepEqual(await store.checkStorage(), []);
  await store.close();
}

async function makeTeams(store: Store): Promise<string[]> {
  const teams = [];
  for (let i = 0; i < 8; i++) teams.push((await store.ensureTeam(`team ${i}`, 1)).team.id);
  return teams;
}

test('connections that are cut at random lose nothing, store nothing twice and never deadlock', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  const url = await postgres.createDatabase();
  const stores = [await open(url), await open(url), await open(url)];
  const teams = await makeTeams(stores[0] ?? assert.fail());
  const load = startLoad(stores, teams, random);
  let cut = 0;
  const untilMs = performance.now() + 150_000;
  while ((cut < 60 || load.stored.size <= 200) && performance.now() < untilMs) {
    await delay(random() * 20);
    const killed = await postgres.sql(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'tracetally' and datname = current_database() and state <> 'idle'
       order by random() limit 2`,
    );
    cut += killed.length;
  }
  await load.stop();
  await Promise.all(stores.map((store) => store.close()));
  t.diagnostic(
    `seed ${seed}: ${cut} cut, ${load.stored.size} stored, ${load.refused.size} refused`,
  );
  assert.ok(cut >= 60 && load.stored.size > 200, `${cut} cut, ${load.stored.size} stored`);
  await check(url, load, teams);
  const [activity] = await postgres.sql(
    url,
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  assert.equal(activity?.['deadlocks'], '0');
  assert.doesNotMatch(postgres.log(), /deadlock detected/);
});

test('a lost connection with several transactions under way loses nothing and stores nothing twice or later', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  const url = await postgres.createDatabase();
  const proxy = await startCommitProxy(postgres.port);
  const store = await open(url.replace(`:${postgres.port}/`, `:${proxy.port}/`));
  const teams = (await makeTeams(store)).slice(0, 2);
  const load = startLoad([store], teams, random, 32);
  const mishaps: Mishap[] = ['lost', 'answerLost', 'late', 'denied', 'deniedAfter'];
  for (let i = 0; i < 12; i++) {
    const before = load.stored.size;
    await eventually('writes', 120_000, () => load.stored.size > before + 200, 5);
    const mishap = mishaps[Math.floor(random() * mishaps.length)] ?? 'lost';
    proxy.plan.push(...Array.from({ length: 1 + Math.floor(random() * 3) }, () => mishap));
    await eventually('the mishaps', 120_000, () => proxy.plan.length === 0, 5);
  }
  await load.stop();
  await store.close();
  await proxy.close();
  t.diagnostic(`seed ${seed}: ${load.stored.size} stored, ${load.refused.size} refused`);
  assert.ok(proxy.callsAtOnceMax() > 1, 'a transaction was sent before the last had ended');
  await check(url, load, teams);
});

test('what was acknowledged survives kill -9 of PostgreSQL, and the stores go on by themselves', async (t) => {
  const seed = chooseSeed();
  const url = await postgres.createDatabase();
  const stores = [await open(url), await open(url)];
  const [first = assert.fail()] = stores;
  const teams = await makeTeams(first);
  const load = startLoad(stores, teams, seededRandom(seed));
  for (let i = 0; i < 3; i++) {
    const before = load.stored.size;
    await eventually('writes before the kill', 120_000, () => load.stored.size > before + 100, 10);
    await postgres.kill();
    await assert.rejects(first.ping());
    await postgres.start();
    await first.ping();
  }
  const before = load.stored.size;
  await eventually('a write after the restart', 120_000, () => load.stored.size > before, 10);
  await load.stop();
  await Promise.all(stores.map((store) => store.close()));
  t.diagnostic(`seed ${seed}: ${load.stored.size} stored, ${load.refused.size} refused`);
  await check(url, load, teams);
});

test('without its database the service answers 503, and serves again when the database is back', async () => {
  const database = await postgres.createDatabase();
  const service = await startTestService({ flags: { database } });
  try {
    const { key } = await service.keyFor();
    const post = () => service.call(key, 'POST', '/traces', { model: 'm', input: 'in' });
    assert.equal((await post()).status, 201);
    await postgres.kill();
    assert.equal((await service.call(null, 'GET', '/readyz')).status, 503);
    assert.equal((await service.call(null, 'GET', '/healthz')).status, 200);
    const answers = [await post(), await service.call(key, 'GET', '/traces')];
    for (const { status, json, headers } of answers) {
      assert.deepEqual([status, json.code], [503, 'store_unavailable']);
      assert.ok(headers.get('retry-after'));
    }
    await postgres.start();
    assert.equal((await service.call(null, 'GET', '/readyz')).status, 200);
    assert.equal((await post()).status, 201);
    const { json } = await service.call(key, 'GET', '/traces');
    assert.equal(json.total, 2);
    assert.equal((await service.call(key, 'GET', '/analytics/overview')).json.total_calls, 2);
  } finally {
    await service.stop();
  }
});
