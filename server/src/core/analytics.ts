import { dayOf, formatDay, formatDayLabel } from './clock.ts';
import { limits } from '../limits.ts';
import { formatDollars } from './money.ts';
import { emptyTally } from './rollup.ts';
import type { Tally } from './rollup.ts';

/** A number that goes onto the wire exactly as written, such as `0.001500`. */
export type ExactNumber = RawJSON;

export type Overview = {
  total_calls: number;
  avg_latency_ms: number;
  total_cost_usd: ExactNumber;
  success_rate: number;
  error_count: number;
};

type GroupRecord = {
  call_count: number;
  avg_latency_ms: number;
  total_cost_usd: ExactNumber;
  success_rate: number;
};
export type ModelRecord = { model: string } & GroupRecord;
export type FeatureRecord = { feature_name: string } & GroupRecord;

export type DailyRecord = {
  date: string;
  label: string;
  call_count: number;
  total_cost_usd: ExactNumber;
  avg_latency_ms: number;
  error_count: number;
};

export interface NamedTally {
  key: string;
  tally: Tally;
}

export interface DayTally {
  day: number;
  tally: Tally;
}

export function overviewOf(tally: Tally): Overview {
  return {
    total_calls: Number(tally.calls),
    avg_latency_ms: averageLatency(tally),
    total_cost_usd: totalCost(tally),
    success_rate: successRate(tally),
    error_count: Number(tally.errors),
  };
}

export function modelRecord({ key, tally }: NamedTally): ModelRecord {
  return { model: key, ...groupRecord(tally) };
}

export function featureRecord({ key, tally }: NamedTally): FeatureRecord {
  return { feature_name: key, ...groupRecord(tally) };
}

function groupRecord(tally: Tally): GroupRecord {
  return {
    call_count: Number(tally.calls),
    avg_latency_ms: averageLatency(tally),
    total_cost_usd: totalCost(tally),
    success_rate: successRate(tally),
  };
}

/** The days of the daily series: the last one is the day of `nowUs`. */
export function dailyRange(nowUs: number): { firstDay: number; lastDay: number } {
  const lastDay = dayOf(nowUs);
  return { firstDay: lastDay - limits.dailySeriesDays + 1, lastDay };
}

/** One record a day of the range, oldest first; days without calls are zeros. */
export function dailySeries(
  range: { firstDay: number; lastDay: number },
  days: readonly DayTally[],
): DailyRecord[] {
  const byDay = new Map(days.map(({ day, tally }) => [day, tally]));
  const series: DailyRecord[] = [];
  for (let day = range.firstDay; day <= range.lastDay; day++) {
    const tally = byDay.get(day) ?? emptyTally;
    series.push({
      date: formatDay(day),
      label: formatDayLabel(day),
      call_count: Number(tally.calls),
      total_cost_usd: totalCost(tally),
      avg_latency_ms: averageLatency(tally),
      error_count: Number(tally.errors),
    });
  }
  return series;
}

/** The mean over the traces that carry a latency, rounded half up; 0 where none does. */
function averageLatency({ latencySum, latencyCount }: Tally): number {
  return latencyCount === 0n ? 0 : Number(divideHalfUp(latencySum, latencyCount));
}

/** A percentage with two decimals; 0 where there are no calls. */
function successRate({ calls, errors }: Tally): number {
  return calls === 0n ? 0 : Number(divideHalfUp((calls - errors) * 10_000n, calls)) / 100;
}

function totalCost({ costMicros, costPicos }: Tally): ExactNumber {
  return JSON.rawJSON(formatDollars(costMicros, costPicos));
}

function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}
