import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  averageLatency,
  dailyRange,
  everyDay,
  successRate,
  totalCost,
} from '../../src/core/analytics.ts';
import { dayOf, formatDay } from '../../src/core/clock.ts';
import { noMeasures } from '../../src/core/rollup.ts';
import { us } from '../support/service.ts';

test('without calls every figure is zero', () => {
  assert.equal(averageLatency(noMeasures), 0n);
  assert.equal(successRate(noMeasures), 0);
  assert.equal(totalCost(noMeasures), '0.000000');
});

test('averages and rates are rounded half up', () => {
  const table = [
    { calls: 3n, errors: 1n, rate: 66.67 },
    { calls: 3n, errors: 2n, rate: 33.33 },
    { calls: 8n, errors: 7n, rate: 12.5 },
    { calls: 20_000n, errors: 19_999n, rate: 0.01 },
    { calls: 20_001n, errors: 20_000n, rate: 0 },
    { calls: 20_000n, errors: 1n, rate: 100 },
    { calls: 1n, errors: 0n, rate: 100 },
  ];
  for (const { calls, errors, rate } of table) {
    assert.equal(successRate({ ...noMeasures, calls, errors }), rate);
  }
  const average = (latency_sum: bigint, latency_count: bigint) =>
    averageLatency({ ...noMeasures, latency_sum, latency_count });
  assert.equal(average(5n, 2n), 3n);
  assert.equal(average(7n, 3n), 2n);
  assert.equal(average(2n ** 62n, 2n ** 31n), 2n ** 31n);
});

test('a cost past 2^53 keeps its last digit', () => {
  const cost_micros = 9_007_199_254_740_993n;
  assert.equal(totalCost({ ...noMeasures, cost_micros, cost_picos: 1n }), '9007199254.740993');
});

test('the daily series is seven days, oldest first, with zeros for days without calls', () => {
  const now = us('2026-03-02T00:00:00Z');
  const today = { day: dayOf(now), measures: { ...noMeasures, calls: 2n } };
  const series = everyDay(dailyRange(now), [today]);
  assert.deepEqual(
    series.map(({ day, measures }) => [formatDay(day), measures.calls]),
    [
      ['2026-02-24', 0n],
      ['2026-02-25', 0n],
      ['2026-02-26', 0n],
      ['2026-02-27', 0n],
      ['2026-02-28', 0n],
      ['2026-03-01', 0n],
      ['2026-03-02', 2n],
    ],
  );
});
