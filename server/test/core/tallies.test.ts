import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { calendarOf } from '../../src/core/calendar.ts';
import { setsOf } from '../../src/core/dimensions.ts';
import { encodeMeasures } from '../../src/core/encoded-measures.ts';
import { decodeMeasures } from '../../src/core/measures-sum.ts';
import { matches } from '../../src/core/query.ts';
import type { QueryField, TallyQuery } from '../../src/core/query.ts';
import { planQuery } from '../../src/core/query-plan.ts';
import { RollupFold } from '../../src/core/rollup.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { TallySheet, compareTexts, isInTiles } from '../../src/core/tally-sheet.ts';
import {
  assertPercentiles,
  comparable,
  comparableNaive,
  naiveTallies,
  nameOf,
} from '../support/naive-tallies.ts';
import { countedTraces, tallyQueries, timeZones } from '../support/tally-cases.ts';

test('rollups and a tail of any length give the same answer as a plain array', () => {
  const cases = fc.constantFrom(...timeZones).chain((timeZone) =>
    fc.record({
      timeZone: fc.constant(timeZone),
      traces: countedTraces(timeZone),
      query: tallyQueries(timeZone),
      rolled: fc.record({ hot: fc.nat({ max: 40 }), wide: fc.nat({ max: 40 }) }),
    }),
  );
  let fromRollups = 0;
  let groups = 0;
  fc.assert(
    fc.property(cases, ({ timeZone, traces, query, rolled }) => {
      const answer = answerOf(timeZone, traces, query, rolled);
      if (answer.isFromRollups) fromRollups += 1;
      groups += answer.tallies.length;
      const expected = naiveTallies(traces, query, timeZone);
      assert.equal(answer.tallies.length, expected.size);
      for (const tally of answer.tallies) {
        const naive = expected.get(nameOf(tally));
        assert.ok(naive, nameOf(tally));
        assert.deepEqual(comparable(tally), comparableNaive(naive));
        assertPercentiles(tally, query, naive.latencies);
      }
    }),
    { numRuns: 2_000 },
  );
  assert.ok(fromRollups > 500 && groups > 2_000, `${fromRollups} from rollups, ${groups} groups`);
});

test('names are in the order of their UTF-8 bytes', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', '\u00e9', '\u4e00', '\uffee', '\u{1f600}'),
  });
  fc.assert(
    fc.property(text, text, (a, b) => {
      const expected = Buffer.compare(Buffer.from(a), Buffer.from(b));
      assert.equal(Math.sign(compareTexts(a, b)), expected);
    }),
    { numRuns: 2_000 },
  );
});

function answerOf(
  timeZone: string,
  traces: readonly CountedTrace[],
  query: TallyQuery,
  rolled: Readonly<Record<'hot' | 'wide', number>>,
) {
  const calendar = calendarOf(timeZone);
  const plan = planQuery(query, calendar);
  const sheet = new TallySheet(query, calendar);
  if (plan.kind === 'traces') {
    for (const trace of traces) sheet.addTrace(trace);
    return { isFromRollups: false, tallies: sheet.tallies() };
  }
  const { set, tiles } = plan;
  assert.ok(setsOf(set.speed).includes(set));
  const fold = new RollupFold(set.speed, calendar);
  for (const trace of traces.slice(0, rolled[set.speed])) fold.add(trace);
  for (const rollup of fold.rollups()) {
    if (rollup.set !== set.number || !isInTiles(tiles, rollup.grain, rollup.bucket)) continue;
    const { calls } = rollup.measures;
    const isError = rollup.group.status === 'error';
    const stored = { calls, isError, ...encodeMeasures(rollup.measures) };
    assert.deepEqual(decodeMeasures(stored), rollup.measures);
    if (!matches(query.filter, rollup.group)) continue;
    const values: Partial<Record<QueryField, string | null>> = rollup.group;
    sheet.addStored({
      ...rollup,
      ...stored,
      group: query.groupBy.map((name) => values[name] ?? null),
    });
  }
  for (const trace of traces.slice(rolled[set.speed])) sheet.addTrace(trace);
  return { isFromRollups: true, tallies: sheet.tallies() };
}
