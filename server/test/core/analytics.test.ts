import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dailyRange, dailySeries, overviewOf } from '../../src/core/analytics.ts';
import { dayOf } from '../../src/core/clock.ts';
import { emptyTally } from '../../src/core/rollup.ts';
import { us } from '../support/service.ts';

test('an empty team reads zeros', () => {
  assert.equal(
    JSON.stringify(overviewOf(emptyTally)),
    '{"total_calls":0,"avg_latency_ms":0,"total_cost_usd":0.000000,"success_rate":0,"error_count":0}',
  );
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
    assert.equal(overviewOf({ ...emptyTally, calls, errors }).success_rate, rate);
  }
  const average = (latencySum: bigint, latencyCount: bigint) =>
    overviewOf({ ...emptyTally, latencySum, latencyCount }).avg_latency_ms;
  assert.equal(average(5n, 2n), 3);
  assert.equal(average(7n, 3n), 2);
  assert.equal(average(2n ** 62n, 2n ** 31n), 2 ** 31);
});

test('sums past 2^53 keep their last digit', () => {
  const overview = overviewOf({ ...emptyTally, costMicros: 9_007_199_254_740_993n, costPicos: 1n });
  assert.match(JSON.stringify(overview), /"total_cost_usd":9007199254\.740993/);
});

test('the daily series is seven days, oldest first, with zeros where nothing was', () => {
  const now = us('2026-03-02T00:00:00Z');
  const range = dailyRange(now);
  const series = dailySeries(range, [
    { day: dayOf(now), tally: { ...emptyTally, calls: 2n, errors: 1n } },
  ]);
  assert.deepEqual(
    series.map(({ date, label, call_count }) => [date, label, call_count]),
    [
      ['2026-02-24', 'Feb 24', 0],
      ['2026-02-25', 'Feb 25', 0],
      ['2026-02-26', 'Feb 26', 0],
      ['2026-02-27', 'Feb 27', 0],
      ['2026-02-28', 'Feb 28', 0],
      ['2026-03-01', 'Mar 1', 0],
      ['2026-03-02', 'Mar 2', 2],
    ],
  );
});
