import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { calendarOf } from '../../src/core/calendar.ts';
import { MeasuresBatch, noMeasures } from '../../src/core/measures.ts';
import { costOf } from '../../src/core/trace-cost.ts';
import { formatExactDollars } from '../../src/core/money.ts';
import type { Tally } from '../../src/core/query.ts';
import { recordNames, recordText } from '../../src/core/record-fields.ts';
import {
  Ranking,
  fillWithZeros,
  reportOn,
  reportWithRest,
  startsIn,
} from '../../src/core/report.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { us } from '../support/service.ts';

/** A tally of calls that cost a cent each. */
function tally(group: string | null, calls: number, startUs: number | null = null): Tally {
  const batch = new MeasuresBatch();
  const trace = draftTrace({ model: 'm', cost_usd: 0.01, latency_ms: 10 * calls });
  for (let i = 0; i < calls; i++) batch.add(trace, costOf(trace));
  return { group: [group], startUs, measures: batch.total() };
}

const byCost = { by: 'total_cost_usd', isDescending: true } as const;
const byDay = { interval: 'day' } as const;
const shown = (tallies: readonly Tally[]) =>
  tallies.map(({ group, startUs, measures }) => [group[0], startUs, measures.calls]);

describe('a ranking', () => {
  test('keeps the best groups and adds up the others, however many there are', () => {
    const ranking = new Ranking(byCost, 2);
    for (let i = 0; i < 5_000; i++) ranking.add(tally(`g${i}`, 1 + ((i * 7) % 5)));
    ranking.add(tally('best', 9));
    const { rows, other, totals, groups } = ranking.report();
    // Of those with five calls, the first by name.
    assert.deepEqual(shown(rows), [
      ['best', null, 9],
      ['g1002', null, 5],
    ]);
    assert.equal(other.length, 1);
    assert.equal((other[0]?.measures.calls ?? 0) + 14, totals.calls);
    assert.equal(totals.calls, 15_009);
    assert.equal(groups.length, 2);
  });

  test('breaks ties by name, null first, and puts groups without a value last in either order', () => {
    const names = ['b', null, 'a', 'none'];
    for (const isDescending of [true, false]) {
      const ranking = new Ranking({ by: 'p95_latency_ms', isDescending }, 9);
      for (const name of names) ranking.add(tally(name, name === 'none' ? 0 : 1));
      const ranked = ranking.report().rows.map(({ group }) => group[0]);
      assert.deepEqual(ranked, [null, 'a', 'b', 'none']);
    }
  });
});

describe('a report per interval', () => {
  const tallies = [
    tally('a', 1, 2),
    tally('b', 4, 1),
    tally('c', 2, 2),
    tally('a', 2, 1),
    tally('d', 1, 1),
  ];

  test('ranks groups over the whole range, and has the rest of each interval', () => {
    const { rows, other, totals } = reportOn(byDay, tallies, byCost, 2);
    assert.deepEqual(shown(rows), [
      ['b', 1, 4],
      ['a', 1, 2],
      ['a', 2, 1],
    ]);
    assert.deepEqual(shown(other), [
      [undefined, 1, 1],
      [undefined, 2, 2],
    ]);
    assert.equal(totals.calls, 10);
  });

  test('is the same if only the best groups and the sums of all are known', () => {
    const best = tallies.filter(({ group }) => group[0] === 'a' || group[0] === 'b');
    const together = reportOn(
      byDay,
      tallies.map((one) => ({ ...one, group: [] })),
      byCost,
      0,
    ).other;
    assert.deepEqual(reportWithRest(best, together, byCost), reportOn(byDay, tallies, byCost, 2));
  });

  test('is filled with zeros in the order of the ranks', () => {
    const filled = fillWithZeros(reportOn(byDay, tallies, byCost, 2), [0, 1, 2]);
    assert.deepEqual(shown(filled.rows), [
      ['b', 0, 0],
      ['a', 0, 0],
      ['b', 1, 4],
      ['a', 1, 2],
      ['b', 2, 0],
      ['a', 2, 1],
    ]);
    assert.equal(filled.other.length, 3);
  });
});

test('the intervals of a range, also when the clock is changed', () => {
  const berlin = calendarOf('Europe/Berlin');
  const range = { fromUs: us('2026-10-24T10:00:00Z'), toUs: us('2026-10-26T10:00:00Z') };
  const starts = (interval: 'hour' | 'day' | 'week' | 'month'): string[] =>
    (startsIn(interval, range, berlin, 100) ?? []).map((at) => new Date(at / 1000).toISOString());
  assert.deepEqual(starts('day'), [
    '2026-10-23T22:00:00.000Z',
    '2026-10-24T22:00:00.000Z',
    '2026-10-25T23:00:00.000Z',
  ]);
  assert.deepEqual(starts('week'), ['2026-10-18T22:00:00.000Z', '2026-10-25T23:00:00.000Z']);
  assert.deepEqual(starts('month'), ['2026-09-30T22:00:00.000Z']);
  assert.equal(starts('hour').length, 48);
  assert.equal(startsIn('hour', range, berlin, 47), null);
});

test('costs have all their decimals, and latencies are null if there are none', () => {
  for (const [picos, text] of [
    [0n, '0'],
    [1n, '0.000000000001'],
    [1_500_000_000_000n, '1.5'],
    [2_000_000_000_000n, '2'],
    [10n ** 24n + 10n, '1000000000000.00000000001'],
  ] as const) {
    assert.equal(formatExactDollars(picos), text);
  }
  const empty = Object.fromEntries(
    recordNames.map((name) => [name, recordText(name, noMeasures())]),
  );
  assert.deepEqual(
    Object.keys(empty).filter((name) => empty[name] === 'null'),
    ['avg_latency_ms', 'p50_latency_ms', 'p90_latency_ms', 'p95_latency_ms', 'p99_latency_ms'],
  );
});
