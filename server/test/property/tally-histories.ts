import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { TallyQuery } from '../../src/core/query.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { Store } from '../../src/store/store.ts';
import { examineTeam } from '../../src/tools/verify.ts';
import {
  assertPercentiles,
  comparable,
  comparableNaive,
  naiveTallies,
  nameOf,
} from '../support/naive-tallies.ts';
import { talliesOf } from '../support/service.ts';
import { countedTraces, tallyQueries, timeZones } from '../support/tally-cases.ts';

/** Between two writes: how many traces are rolled up at each speed. */
const rolls = fc.record({ hot: fc.nat({ max: 60 }), wide: fc.nat({ max: 60 }) });

const history = fc.constantFrom(...timeZones).chain((timeZone) =>
  fc.record({
    timeZone: fc.constant(timeZone),
    steps: fc.array(fc.record({ traces: countedTraces(timeZone), rolls }), {
      minLength: 1,
      maxLength: 3,
    }),
    queries: fc.array(tallyQueries(timeZone), { minLength: 1, maxLength: 4 }),
    /** If set, everything is built again for this time zone halfway. */
    rebuilt: fc.option(fc.constantFrom(...timeZones), { freq: 8 }),
  }),
);

/** How many answers were compared, and how many of them had groups. */
export interface SeenTallies {
  answers: number;
  groups: number;
}

/** Random traces, rolls, rebuilds and questions: the store answers as a plain array does, and verify is clean. It must roll manually. */
export async function compareTallies(store: Store, numRuns: number): Promise<SeenTallies> {
  const seen = { answers: 0, groups: 0 };
  let teams = 0;
  await fc.assert(
    fc.asyncProperty(history, async ({ timeZone, steps, queries, rebuilt }) => {
      const { team } = await store.ensureTeam(`tallies ${++teams}`, 1, timeZone);
      const stored: CountedTrace[] = [];
      let zone: string = timeZone;
      for (const {
        traces,
        rolls: { hot, wide },
      } of steps) {
        stored.push(...(await append(store, team.id, traces)));
        if (hot > 0) await store.roll(team.id, hot);
        if (wide > 0) await store.roll(team.id, wide);
        for (const query of queries) await compare(store, team.id, stored, query, zone, seen);
        if (rebuilt === null || rebuilt === zone) continue;
        zone = rebuilt;
        await store.rebuild(team.id, zone);
        for (const query of queries) await compare(store, team.id, stored, query, zone, seen);
      }
      // The random traces have counts that no request could have stored.
      const { invalid: _invalid, ...found } = await examineTeam(store, team.id);
      const clean = { traces: stored.length, sequence: [], damaged: [], derived: [] };
      assert.deepEqual(found, clean);
    }),
    { numRuns },
  );
  assert.ok(seen.answers > numRuns && seen.groups > numRuns, JSON.stringify(seen));
  return seen;
}

/** As they are stored: their times ascend. */
async function append(
  store: Store,
  teamId: string,
  traces: readonly CountedTrace[],
): Promise<CountedTrace[]> {
  if (traces.length === 0) return [];
  const sorted = traces.toSorted((a, b) => a.createdAtUs - b.createdAtUs);
  const drafts = sorted.map(({ createdAtUs: _createdAtUs, ...narrow }) => ({
    ...draftTrace({ model: narrow.model }),
    ...narrow,
  }));
  const timesUs = sorted.map(({ createdAtUs }) => createdAtUs);
  const [outcome] = await store.append([{ teamId, drafts, timesUs }]);
  const stamps = outcome?.kind === 'stored' ? outcome.stamps : assert.fail(JSON.stringify(outcome));
  return sorted.map((trace, i) => ({ ...trace, createdAtUs: stamps[i]?.createdAtUs ?? 0 }));
}

async function compare(
  store: Store,
  teamId: string,
  stored: readonly CountedTrace[],
  query: TallyQuery,
  timeZone: string,
  seen: SeenTallies,
): Promise<void> {
  assert.equal(await store.timeZone(teamId), timeZone);
  const tallies = await talliesOf(store, teamId, query);
  const expected = naiveTallies(stored, query, timeZone);
  assert.deepEqual(tallies.map(nameOf).sort(), [...expected.keys()].sort());
  for (const tally of tallies) {
    const naive = expected.get(nameOf(tally)) ?? assert.fail();
    assert.deepEqual(comparable(tally), comparableNaive(naive));
    assertPercentiles(tally, query, naive.latencies);
  }
  const calls = tallies.map(({ measures }) => measures.calls);
  assert.deepEqual(
    calls,
    calls.toSorted((a, b) => b - a),
  );
  seen.answers += 1;
  seen.groups += tallies.length;
}
