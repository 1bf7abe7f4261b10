import { limits } from '../limits.ts';
import type { Calendar } from './calendar.ts';
import { noMeasures } from './measures.ts';
import type { Measures } from './measures.ts';
import { formatDollars } from './money.ts';
import type { Tally, TallyQuery } from './query.ts';

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

/** The daily series that ends with the day of `nowUs`. */
export function dailyQuery(nowUs: number, calendar: Calendar): TallyQuery {
  const today = calendar.dayOf(nowUs);
  const fromUs = calendar.startOfDay(today - limits.dailySeriesDays + 1);
  const toUs = calendar.startOfDay(today + 1);
  return { filter: {}, groupBy: [], range: { fromUs, toUs }, interval: 'day', sumsOnly: true };
}

/** Every day of the daily series, oldest first; days without calls have zeros. */
export function everyDay(
  nowUs: number,
  calendar: Calendar,
  tallies: readonly Tally[],
): DayMeasures[] {
  const today = calendar.dayOf(nowUs);
  const byStart = new Map(tallies.map(({ startUs, measures }) => [startUs, measures]));
  return Array.from({ length: limits.dailySeriesDays }, (_, i) => {
    const day = today - limits.dailySeriesDays + 1 + i;
    return { day, measures: byStart.get(calendar.startOfDay(day)) ?? noMeasures() };
  });
}

/** False if the tallies were added up by the days of another time zone. */
export function areDaysOf(calendar: Calendar, tallies: readonly Tally[]): boolean {
  return tallies.every(
    ({ startUs }) => startUs !== null && calendar.startOfDay(calendar.dayOf(startUs)) === startUs,
  );
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
