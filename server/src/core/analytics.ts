import { limits } from '../limits.ts';
import type { Calendar } from './calendar.ts';
import { noMeasures } from './measures.ts';
import type { Measures } from './measures.ts';
import { formatDollars } from './money.ts';
import type { Tally, TallyQuery, TimeRange } from './query.ts';

export interface DayMeasures {
  /** The local day since 1970-01-01. */
  day: number;
  measures: Measures;
}

/** Sums over all of a team's traces. */
export const overviewQuery: TallyQuery = {
  filter: {},
  groupBy: [],
  range: null,
  interval: null,
  sumsOnly: true,
};

/** The measures of an answer without groups or intervals. */
export function onlyMeasures([tally]: readonly Tally[]): Measures {
  return tally?.measures ?? noMeasures();
}

/** The range of the daily series that ends with the day of `nowUs`. */
export function dailyRange(nowUs: number, calendar: Calendar): TimeRange {
  const today = calendar.dayOf(nowUs);
  return {
    fromUs: calendar.startOfDay(today - limits.dailySeriesDays + 1),
    toUs: calendar.startOfDay(today + 1),
  };
}

/** The daily series that ends with the day of `nowUs`. */
export function dailyQuery(nowUs: number, calendar: Calendar): TallyQuery {
  return {
    filter: {},
    groupBy: [],
    range: dailyRange(nowUs, calendar),
    interval: 'day',
    sumsOnly: true,
  };
}

/** The days of a range. A day that does not exist in the time zone is left out. */
export function daysIn({ fromUs, toUs }: TimeRange, calendar: Calendar): number[] {
  const first = calendar.dayOf(fromUs);
  const days = Array.from({ length: calendar.dayOf(toUs - 1) - first + 1 }, (_, i) => first + i);
  return days.filter((day) => calendar.startOfDay(day) < calendar.startOfDay(day + 1));
}

/** Every one of these days; those without calls have zeros. */
export function everyDay(
  days: readonly number[],
  calendar: Calendar,
  tallies: readonly Tally[],
): DayMeasures[] {
  const byStart = new Map(tallies.map(({ startUs, measures }) => [startUs, measures]));
  return days.map((day) => ({
    day,
    measures: byStart.get(calendar.startOfDay(day)) ?? noMeasures(),
  }));
}

/** The mean over the traces that have a latency, rounded half up; 0 if there are none. */
export function averageLatency({ latency_sum, latency_count }: Measures): bigint {
  return latency_count === 0 ? 0n : divideHalfUp(latency_sum, BigInt(latency_count));
}

/** A percentage with two decimals; 0 if there are no calls. */
export function successRate({ calls, errors }: Measures): number {
  if (calls === 0) return 0;
  return Number(divideHalfUp(BigInt(calls - errors) * 10_000n, BigInt(calls))) / 100;
}

/** Dollars with exactly six decimals. */
export function totalCost({ cost_picos }: Measures): string {
  return formatDollars(cost_picos);
}

function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}
