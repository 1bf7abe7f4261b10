import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadPriceList } from '../../src/core/prices/load-price-list.ts';
import { OwnPrices } from '../../src/core/prices/own-prices.ts';
import { openPricer } from '../../src/core/prices/pricer.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { RepriceResult } from '../../src/core/reprice.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { openReading } from '../../src/store/sqlite/connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { RememberedTraces } from '../../src/store/sqlite/remembered-traces.ts';
import { prepareSnapshots } from '../../src/store/sqlite/team-snapshot.ts';
import type { TeamSnapshot } from '../../src/store/sqlite/team-snapshot.ts';
import type { RepriceRun } from '../../src/store/repricer.ts';
import type { Store } from '../../src/store/store.ts';
import { repriceAll } from '../../src/tools/reprice.ts';
import { comparable, comparableNaive, naiveTallies, nameOf } from '../support/naive-tallies.ts';
import { manualClock, talliesOf, temporaryFolder, us } from '../support/service.ts';

const startUs = us('2026-10-05T00:00:00Z');
const hourUs = 3_600_000_000;

test('questions about a busy user count each call once, also those that are asked at once while more are written', () =>
  withTeam(async (store, teamId) => {
    const stored: CountedTrace[] = [];
    const append = async (count: number): Promise<void> => {
      stored.push(...(await appendTo(store, teamId, count, stored.length)));
    };
    await append(1_500);
    await store.roll(teamId, 'wide', 1_200);
    for (const count of [0, 1, 700, 0, 3_000]) {
      await append(count);
      const whole = [...stored];
      await Promise.all(questions.map((query) => compare(store, teamId, whole, query)));
      await store.roll(teamId, 'wide', count);
      await store.roll(teamId, 'hot', count);
    }
    // The count of each answer is one that was true while it was computed.
    const [query = assert.fail()] = questions;
    const rounds = 15;
    const write = async (): Promise<void> => {
      for (let i = 0; i < rounds; i++) await append(13);
    };
    const ask = async (): Promise<void> => {
      for (let i = 0; i < rounds; i++) {
        const atLeast = countOf(stored, query);
        const calls = sumOfCalls(await talliesOf(store, teamId, query));
        // Some may be committed that are not in the array yet.
        assert.ok(
          calls >= atLeast && calls <= countOf(stored, query) + 13,
          `${calls} of ${atLeast}`,
        );
      }
    };
    await Promise.all([write(), ask(), ask(), ask()]);
    await compare(store, teamId, stored, query);
  }));

test('remembered calls are those of the snapshot of each question, in whatever order they are asked', () =>
  withTeam(async (store, teamId, path) => {
    const db = openReading(path);
    try {
      const memory = new RememberedTraces(db);
      const snapshotOf = prepareSnapshots(db);
      const [query = assert.fail()] = questions;
      const snapshots: TeamSnapshot[] = [];
      const counts: number[] = [];
      const stored: CountedTrace[] = [];
      for (const count of [1_500, 400, 2_500]) {
        stored.push(...(await appendTo(store, teamId, count, stored.length)));
        snapshots.push(snapshotOf(teamId) ?? assert.fail());
        counts.push(countOf(stored, query));
      }
      for (const order of [[0], [1, 1], [2, 0, 1, 2], [0, 1, 2]]) {
        const found = await Promise.all(
          order.map(async (i) => {
            const team = snapshots[i] ?? assert.fail();
            return [...((await memory.matching(team, query)) ?? [])].length;
          }),
        );
        assert.deepEqual(
          found,
          order.map((i) => counts[i]),
        );
      }
    } finally {
      db.close();
    }
  }));

test('the costs of a busy user are the new ones as soon as they were changed', () =>
  withTeam(async (store, teamId) => {
    const stored = await appendTo(store, teamId, 2_000, 0);
    const [query = assert.fail()] = questions;
    await compare(store, teamId, stored, query);
    const run: RepriceRun = {
      id: '00000000-0000-7000-8000-000000000001',
      teamId,
      startedAtUs: startUs,
      finishedAtUs: null,
      runBy: 'test',
      request: { from: 'x', to: null, model: null, onlyUncosted: false, includeClient: true },
      filter: { model: 'm1', fromUs: null, toUs: null, scope: 'all' },
      doneSeq: 0,
      lastSeq: stored.length,
      result: new RepriceResult(2),
    };
    const rates = { input: 3, output: 7, cacheRead: 1, cacheWrite: null, reasoning: null };
    const price = {
      no: 1,
      teamId: null,
      model: 'm1',
      fromDay: 0,
      setAtUs: 0,
      setBy: 'test',
      rates,
    };
    const pricer = openPricer(new OwnPrices([price]), await loadPriceList());
    await store.addRepriceRun(run);
    await repriceAll(store, run, { pricer, isDryRun: false, clock: () => startUs });
    const repriced = await store.range(teamId, { firstSeq: 1, count: stored.length });
    assert.ok(repriced.some(({ cost_usd }, i) => cost_usd !== stored[i]?.cost_usd));
    await compare(store, teamId, repriced, query);
  }));

test('a user with more calls than are remembered is answered from the calls themselves', () =>
  withTeam(async (store, teamId) => {
    const stored: CountedTrace[] = [];
    const [query = assert.fail()] = questions;
    const batch = 5_000;
    while (countOf(stored, query) <= limits.rememberedTracesMax) {
      stored.push(...(await appendTo(store, teamId, batch, stored.length)));
      if (stored.length % (2 * batch) === 0) await compare(store, teamId, stored, query);
    }
    await compare(store, teamId, stored, query);
    await compare(store, teamId, stored, query);
  }));

const ofUser = { filter: { user_identifier: ['busy'] }, interval: null, range: null } as const;

/** All of them must be read from the traces. */
const questions: readonly TallyQuery[] = [
  { ...ofUser, groupBy: ['model'] },
  { ...ofUser, groupBy: ['feature_name'], interval: 'day' },
  { ...ofUser, groupBy: ['model', 'error_type'], interval: 'hour' },
  {
    ...ofUser,
    groupBy: ['model'],
    range: { fromUs: startUs + hourUs, toUs: startUs + 9 * hourUs },
  },
  { ...ofUser, groupBy: ['status'], filter: { user_identifier: ['busy'], model: ['m1', 'm2'] } },
  { ...ofUser, groupBy: [], filter: { user_identifier: ['busy'], error_type: [null] } },
  { ...ofUser, groupBy: [], filter: { user_identifier: ['busy'], session_id: ['s1'] } },
  { ...ofUser, groupBy: ['model'], filter: { user_identifier: ['busy', 'other'] } },
];

async function appendTo(
  store: Store,
  teamId: string,
  count: number,
  offset: number,
): Promise<CountedTrace[]> {
  if (count === 0) return [];
  const drafts = Array.from({ length: count }, (_, at) => {
    const i = offset + at;
    return {
      ...draftTrace({ model: `m${i % 3}`, feature_name: `f${i % 7}`, prompt_tokens: i % 1_000 }),
      user_identifier: i % 20 === 0 ? 'other' : 'busy',
      session_id: `s${i % 50}`,
      status: i % 5 === 0 ? ('error' as const) : ('success' as const),
      error_type: i % 5 === 0 ? `e${i % 4}` : null,
      cost_usd: (i % 97) / 1_000,
      cost_source: 'client' as const,
      latency_ms: (i * 31) % 5_000,
      started_at: startUs + ((i * 7_919) % 500) * (hourUs / 4) + i,
    };
  });
  const [outcome] = await store.append([{ teamId, drafts }]);
  const stamps = outcome?.kind === 'stored' ? outcome.stamps : assert.fail();
  return drafts.map((draft, i) => ({ ...draft, createdAtUs: stamps[i]?.createdAtUs ?? 0 }));
}

async function compare(
  store: Store,
  teamId: string,
  stored: readonly CountedTrace[],
  query: TallyQuery,
): Promise<void> {
  const found = (await talliesOf(store, teamId, query)).map((tally) => [
    nameOf(tally),
    comparable(tally),
  ]);
  const naive = [...naiveTallies(stored, query, 'UTC')];
  assert.deepEqual(
    new Map(found as []),
    new Map(naive.map(([name, tally]) => [name, comparableNaive(tally)])),
  );
}

function countOf(stored: readonly CountedTrace[], query: TallyQuery): number {
  const [user] = (query.filter['user_identifier'] as string[]) ?? [];
  return stored.filter(({ user_identifier }) => user_identifier === user).length;
}

function sumOfCalls(tallies: Awaited<ReturnType<typeof talliesOf>>): number {
  return tallies.reduce((sum, { measures }) => sum + measures.calls, 0);
}

async function withTeam(
  use: (store: Store, teamId: string, path: string) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder();
  const { source: clock } = manualClock(0);
  const path = join(folder.path, 'remembered.db');
  const store = await openSqliteStore({ path, clock, role: 'server', rolling: 'manual' });
  try {
    const { team } = await store.ensureTeam('remembered', 1);
    await use(store, team.id, path);
  } finally {
    await store.close();
    folder.remove();
  }
}
