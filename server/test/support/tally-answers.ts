import assert from 'node:assert/strict';
import type { TallyQuery } from '../../src/core/query.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import type { Auditor } from '../../src/store/audit.ts';
import type { TraceReader } from '../../src/store/trace-reader.ts';
import { comparable, comparableNaive, naiveTallies, nameOf } from './naive-tallies.ts';

type Answering = Auditor & Pick<TraceReader, 'tallies' | 'timeZone'>;

const ever = { filter: {}, groupBy: [], range: null, interval: null } as const;

/** Questions that need every set and grain, and some that no set can answer. */
export const usualQueries: readonly TallyQuery[] = [
  ever,
  { ...ever, groupBy: ['status'] },
  { ...ever, groupBy: ['model'], filter: { model: 'set' } },
  { ...ever, groupBy: ['feature_name'], filter: { feature_name: 'set' } },
  { ...ever, groupBy: ['user_identifier'] },
  { ...ever, groupBy: ['model', 'feature_name'] },
  { ...ever, interval: 'hour' },
  { ...ever, interval: 'day', groupBy: ['model'] },
  { ...ever, interval: 'week', groupBy: ['environment'], filter: { status: ['error'] } },
  { ...ever, interval: 'month', groupBy: ['user_identifier'] },
  { ...ever, groupBy: ['error_type'], filter: { user_identifier: 'set' } },
];

/** Compares the answers of a store with sums over a plain array of all its traces. Nothing may be written meanwhile. */
export async function assertTallies(
  store: Answering,
  teamId: string,
  queries: readonly TallyQuery[] = usualQueries,
): Promise<void> {
  await assertTalliesOf(store, teamId, await tracesOf(store, teamId), queries);
}

/** The same with the traces as they are now. An audit has those that the rollups contain. */
export async function assertTalliesOf(
  store: Pick<TraceReader, 'tallies' | 'timeZone'>,
  teamId: string,
  traces: readonly CountedTrace[],
  queries: readonly TallyQuery[] = usualQueries,
): Promise<void> {
  const timeZone = await store.timeZone(teamId);
  for (const query of queries) {
    const expected = naiveTallies(traces, query, timeZone);
    const { first, rest } = await store.tallies(teamId, query);
    const found = [...first];
    for await (const chunk of rest ?? []) found.push(...chunk);
    const what = JSON.stringify(query);
    assert.equal(found.length, expected.size, what);
    for (const tally of found) {
      const naive = expected.get(nameOf(tally)) ?? assert.fail(`${nameOf(tally)} in ${what}`);
      assert.deepEqual(comparable(tally), comparableNaive(naive), what);
    }
  }
}

function tracesOf(store: Auditor, teamId: string): Promise<CountedTrace[]> {
  return store.audit(teamId, async (contents) => {
    const traces: CountedTrace[] = [];
    for await (const chunk of contents.traces) traces.push(...chunk);
    return traces;
  });
}
