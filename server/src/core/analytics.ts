import { limits } from '../limits.ts';
import { dayOf } from './clock.ts';
import { formatDollars } from './money.ts';
import { noMeasures } from './rollup.ts';
import type { Measures } from './rollup.ts';

export interface GroupMeasures {
  group: string;
  measures: Measures;
}

export interface DayMeasures {
  day: number;
  measures: Measures;
}

export interface DayRange {
  firstDay: number;
  lastDay: number;
}

/** The days of the daily series, ending with the day of `nowUs`. */
export function dailyRange(nowUs: number): DayRange {
  const lastDay = dayOf(nowUs);
  return { firstDay: lastDay - limits.dailySeriesDays + 1, lastDay };
}

/** Every day of the range, oldest first; days without calls have zeros. */
export function everyDay({ firstDay, lastDay }: DayRange, days: readonly DayMeasures[]) {
  const byDay = new Map(days.map(({ day, measures }) => [day, measures]));
  return Array.from({ length: lastDay - firstDay + 1 }, (_, i): DayMeasures => {
    const day = firstDay + i;
    return { day, measures: byDay.get(day) ?? noMeasures };
  });
}

/** The mean over the traces that have a latency, rounded half up; 0 if there are none. */
export function averageLatency({ latency_sum, latency_count }: Measures): bigint {
  return latency_count === 0n ? 0n : divideHalfUp(latency_sum, latency_count);
}

/** A percentage with two decimals; 0 if there are no calls. */
export function successRate({ calls, errors }: Measures): number {
  return calls === 0n ? 0 : Number(divideHalfUp((calls - errors) * 10_000n, calls)) / 100;
}

/** Dollars with exactly six decimals. */
export function totalCost({ cost_micros, cost_picos }: Measures): string {
  return formatDollars(cost_micros, cost_picos);
}

function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}
