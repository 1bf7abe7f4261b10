import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  averageLatency,
  dailyQuery,
  dailyRange,
  daysIn,
  everyDay,
  successRate,
  totalCost,
} from '../../src/core/analytics.ts';
import { calendarOf } from '../../src/core/calendar.ts';
import { formatDay } from '../../src/core/clock.ts';
import { noMeasures } from '../../src/core/measures.ts';
import { us } from '../support/service.ts';

test('without calls every figure is zero', () => {
  assert.equal(averageLatency(noMeasures()), 0n);
  assert.equal(successRate(noMeasures()), 0);
  assert.equal(totalCost(noMeasures()), '0.000000');
});

test('averages and rates are rounded half up', () => {
  const table = [
    { calls: 3, errors: 1, rate: 66.67 },
    { calls: 3, errors: 2, rate: 33.33 },
    { calls: 8, errors: 7, rate: 12.5 },
    { calls: 20_000, errors: 19_999, rate: 0.01 },
    { calls: 20_001, errors: 20_000, rate: 0 },
    { calls: 20_000, errors: 1, rate: 100 },
    { calls: 1, errors: 0, rate: 100 },
  ];
  for (const { calls, errors, rate } of table) {
    assert.equal(successRate({ ...noMeasures(), calls, errors }), rate);
  }
  const average = (latency_sum: bigint, latency_count: number) =>
    averageLatency({ ...noMeasures(), latency_sum, latency_count });
  assert.equal(average(5n, 2), 3n);
  assert.equal(average(7n, 3), 2n);
  assert.equal(average(2n ** 62n, 2 ** 31), 2n ** 31n);
});

test('a cost past 2^63 keeps its last digit', () => {
  const cost_picos = 99_007_199_254_740_993_000_001n;
  assert.equal(totalCost({ ...noMeasures(), cost_picos }), '99007199254.740993');
});

const zones: [zone: string, now: string, today: string][] = [
  ['UTC', '2026-03-02T00:00:00Z', '2026-03-02'],
  ['America/New_York', '2026-03-02T00:00:00Z', '2026-03-01'],
  ['Asia/Kathmandu', '2026-03-01T18:15:00Z', '2026-03-02'],
  // With a day of 23 hours in the series.
  ['Europe/Berlin', '2026-03-31T12:00:00Z', '2026-03-31'],
];
for (const [zone, now, today] of zones) {
  test(`the daily series in ${zone} is seven local days, oldest first, with zeros for days without calls`, () => {
    const calendar = calendarOf(zone);
    const nowUs = us(now);
    const { range, interval } = dailyQuery(nowUs, calendar);
    assert.equal(interval, 'day');
    assert.ok(range && range.fromUs < nowUs && range.toUs > nowUs);
    const startUs = calendar.startOfDay(calendar.dayOf(nowUs));
    const measures = { ...noMeasures(), calls: 2 };
    const series = everyDay(daysIn(dailyRange(nowUs, calendar), calendar), calendar, [
      { group: [], startUs, measures },
    ]);
    const first = Temporal.PlainDate.from(today).subtract({ days: 6 });
    assert.deepEqual(
      series.map((day) => [formatDay(day.day), day.measures.calls]),
      Array.from({ length: 7 }, (_, i) => [first.add({ days: i }).toString(), i === 6 ? 2 : 0]),
    );
  });
}
