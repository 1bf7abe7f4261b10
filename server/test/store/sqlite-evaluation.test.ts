import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TallyQuery, TraceFilter } from '../../src/core/query.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { comparable, comparableNaive, naiveTallies, nameOf } from '../support/naive-tallies.ts';
import { manualClock, talliesOf, temporaryFolder, us } from '../support/service.ts';

const hourUs = 3_600_000_000;
const startUs = us('2026-10-05T00:00:00Z');
const sameTime = limits.evaluationChunkRows + 500;
const count = sameTime + 3 * limits.lookupRowsMax;

/** More than one lookup returns, in an order that is not that of their times. */
const drafts = Array.from({ length: count }, (_, i) => ({
  ...draftTrace({ model: `m${i % 3}`, feature_name: `f${i % 7}` }),
  user_identifier: i % 10 === 0 ? 'rare' : 'busy',
  status: i % 5 === 0 ? ('error' as const) : ('success' as const),
  error_type: i % 5 === 0 ? `e${i % 4}` : null,
  cost_usd: (i % 97) / 1_000,
  latency_ms: (i * 31) % 5_000,
  started_at: startedAt(i),
}));

/** More than are read at once have the same time. */
function startedAt(i: number): number {
  return i < sameTime ? startUs + 450 * hourUs : startUs + ((i * 7_919) % count) * (hourUs / 4) + i;
}

/** The last one of the first lookup: it must not be counted again. */
const boundaryUs =
  drafts.filter((draft) => draft.user_identifier === 'busy').at(-limits.lookupRowsMax)
    ?.started_at ?? assert.fail();

const filters: readonly TraceFilter[] = [
  { user_identifier: ['busy'] },
  { user_identifier: ['busy', 'rare'] },
  { user_identifier: ['rare'], status: ['error'] },
  { status: ['error'] },
  { model: ['m1'], feature_name: ['f2', 'f3'] },
];
const ranges: readonly TallyQuery['range'][] = [
  null,
  { fromUs: startUs + 5 * hourUs, toUs: startUs + 20 * hourUs },
  { fromUs: startUs + 30 * hourUs + 1, toUs: startUs + 500 * hourUs + 7 },
  { fromUs: 0, toUs: startUs + 400 * hourUs },
  { fromUs: boundaryUs - hourUs, toUs: boundaryUs + hourUs },
];

test('questions that are read from traces count each trace once, whether by user, by error, by time, or partly from rollups', async () => {
  const folder = temporaryFolder();
  const { source: clock } = manualClock(0);
  const path = join(folder.path, 'evaluation.db');
  const store = await openSqliteStore({ path, clock, role: 'server', rolling: 'manual' });
  try {
    const { team } = await store.ensureTeam('evaluated', 1);
    const [outcome] = await store.append([{ teamId: team.id, drafts }]);
    const stamps = outcome?.kind === 'stored' ? outcome.stamps : assert.fail();
    const stored: CountedTrace[] = drafts.map((draft, i) => ({
      ...draft,
      createdAtUs: stamps[i]?.createdAtUs ?? 0,
    }));
    for (const rolled of [0, count / 2, count]) {
      await store.roll(team.id, rolled);
      await store.roll(team.id, rolled);
      for (const filter of filters) {
        for (const range of ranges) {
          for (const groupBy of [['error_type'], ['model', 'user_identifier'], []] as const) {
            const query = { filter, range, groupBy, interval: 'month' } as const;
            const tallies = await talliesOf(store, team.id, query);
            const expected = naiveTallies(stored, query, 'UTC');
            const found = tallies.map((tally) => [nameOf(tally), comparable(tally)]);
            const naive = [...expected].map(([name, tally]) => [name, comparableNaive(tally)]);
            assert.deepEqual(new Map(found as []), new Map(naive as []));
          }
        }
      }
    }
  } finally {
    await store.close();
    folder.remove();
  }
});

test('a question of one team does not wait for the end of a long one of another', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'turns.db');
  const { source: clock } = manualClock(0);
  const store = await openSqliteStore({ path, clock, role: 'server', rolling: 'manual' });
  try {
    const { team: busy } = await store.ensureTeam('busy', 1);
    const { team: other } = await store.ensureTeam('other', 1);
    const metadata = { tier: 'gold' };
    const many = Array.from({ length: 20 * limits.evaluationChunkRows }, () =>
      draftTrace({ model: 'm', metadata }),
    );
    for (const { id, some } of [
      { id: busy.id, some: many },
      { id: other.id, some: many.slice(0, 10) },
    ]) {
      const [outcome] = await store.append([{ teamId: id, drafts: some }]);
      assert.equal(outcome?.kind, 'stored');
    }
    const query: TallyQuery = {
      filter: {},
      metadata: { tier: ['gold'] },
      groupBy: [],
      range: null,
      interval: null,
    };
    const ended: string[] = [];
    const ask = async (name: string, teamId: string): Promise<number | undefined> => {
      const [tally] = await talliesOf(store, teamId, query);
      ended.push(name);
      return tally?.measures.calls;
    };
    const calls = await Promise.all([ask('long', busy.id), ask('short', other.id)]);
    assert.deepEqual(calls, [many.length, 10]);
    assert.deepEqual(ended, ['short', 'long']);
  } finally {
    await store.close();
    folder.remove();
  }
});
