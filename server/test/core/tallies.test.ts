import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { calendarOf } from '../../src/core/calendar.ts';
import { MeasuresBatch } from '../../src/core/measures.ts';
import { isAskedFor, matches } from '../../src/core/query.ts';
import type { QueryField, TallyQuery } from '../../src/core/query.ts';
import { planQuery } from '../../src/core/query-plan.ts';
import { RollupFold, eventUs } from '../../src/core/rollup.ts';
import type { CountedTrace, Rollup } from '../../src/core/rollup.ts';
import { TallySheet, compareTexts } from '../../src/core/tally-sheet.ts';
import { costOf } from '../../src/core/trace-cost.ts';
import { minuteGrain, sumNames } from '../../src/query/sums-sql.ts';
import { SumList, talliesOf } from '../../src/query/sums.ts';
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
      rolled: fc.nat({ max: 40 }),
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
  rolled: number,
) {
  const calendar = calendarOf(timeZone);
  const plan = planQuery(query, calendar);
  if (plan.kind === 'traces') {
    const sheet = new TallySheet(query, calendar);
    for (const trace of traces) sheet.addTrace(trace);
    return { isFromRollups: false, tallies: sheet.tallies() };
  }
  const { set, tiles } = plan;
  const list = new SumList(query, calendar);
  const add = ({ grain, bucket, group: values, measures }: Omit<Rollup, 'set'>): void => {
    const group = query.groupBy.map((name) => (values as Values)[name] ?? null);
    const row = [grain, bucket, ...group, ...sumsOf(measures)];
    list.add(row);
    if (query.sumsOnly === true) return;
    for (const [bin, count] of measures.latencies) list.countsOf(row)?.add(bin, count);
  };
  const fold = new RollupFold([set], calendar);
  for (const trace of traces.slice(0, rolled)) fold.add(trace);
  for (const rollup of fold.rollups()) {
    const isCovered = tiles.some(
      ({ grain, fromBucket, toBucket }) =>
        grain === rollup.grain && rollup.bucket >= fromBucket && rollup.bucket < toBucket,
    );
    if (isCovered && matches(query.filter, rollup.group)) add(rollup);
  }
  for (const trace of traces.slice(rolled)) {
    if (!isAskedFor(query, trace)) continue;
    const single = new MeasuresBatch();
    single.add(trace, costOf(trace));
    const bucket = Math.floor(eventUs(trace) / 60_000_000);
    add({ grain: minuteGrain, bucket, group: trace, measures: single.total() });
  }
  return { isFromRollups: true, tallies: talliesOf(list.all(), query) };
}

type Values = Partial<Record<QueryField, string | null>>;

/** In the order of the columns of an answer. */
function sumsOf(measures: Rollup['measures']): (number | bigint)[] {
  return sumNames.map((name) => {
    if (name === 'cost_micros') return 0;
    if (name === 'cost_picos') return measures.cost_picos;
    return measures[name];
  });
}
