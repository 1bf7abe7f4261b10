import assert from 'node:assert/strict';
import { percentile } from '../../src/core/latency-histogram.ts';
import type { Tally, TallyQuery } from '../../src/core/query.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { summedNames } from '../../src/core/trace-fields.ts';

/** What a query should answer, computed from a plain array in the most obvious way. */
export interface NaiveTally {
  group: readonly (string | null)[];
  startUs: number | null;
  calls: number;
  errors: number;
  uncosted: number;
  /** In ascending order. */
  latencies: number[];
  sums: bigint[];
  costPicos: bigint;
}

export function naiveTallies(
  traces: readonly CountedTrace[],
  { filter, groupBy, range, interval }: TallyQuery,
  timeZone: string,
): Map<string, NaiveTally> {
  const tallies = new Map<string, NaiveTally>();
  for (const trace of traces) {
    const us = trace.started_at ?? trace.createdAtUs;
    if (range && (us < range.fromUs || us >= range.toUs)) continue;
    const isWanted = Object.entries(filter).every(([field, accepted]) =>
      accepted === 'set'
        ? trace[field as keyof typeof filter] !== null
        : accepted.includes(trace[field as keyof typeof filter]),
    );
    if (!isWanted) continue;
    const startUs = interval === null ? null : startOf(interval, us, timeZone);
    const group = groupBy.map((field) => trace[field]);
    const name = nameOf({ group, startUs });
    const tally = tallies.get(name) ?? {
      group,
      startUs,
      calls: 0,
      errors: 0,
      uncosted: 0,
      latencies: [],
      sums: summedNames.map(() => 0n),
      costPicos: 0n,
    };
    tallies.set(name, tally);
    tally.calls += 1;
    if (trace.status === 'error') tally.errors += 1;
    if (trace.latency_ms !== null) tally.latencies.push(trace.latency_ms);
    tally.sums = tally.sums.map((sum, i) => sum + BigInt(trace[summedNames[i] ?? 'model'] ?? 0));
    if (trace.cost_usd === null) tally.uncosted += 1;
    else tally.costPicos += picosOf(trace.cost_usd);
  }
  for (const tally of tallies.values()) tally.latencies.sort((a, b) => a - b);
  return tallies;
}

export function nameOf({ group, startUs }: Pick<Tally, 'group' | 'startUs'>): string {
  return JSON.stringify([group, startUs]);
}

/** The same shape from an answer of the service. Percentiles are compared apart. */
export function comparable({ group, startUs, measures }: Tally) {
  const { calls, errors, uncosted_calls, cost_picos, latency_sum, latency_count } = measures;
  const sums = summedNames.map((name) => measures[name]);
  return {
    group,
    startUs,
    calls,
    errors,
    uncosted: uncosted_calls,
    sums,
    costPicos: cost_picos,
    latency_sum,
    latency_count,
  };
}

export function comparableNaive({ latencies, ...tally }: NaiveTally) {
  const latency_sum = latencies.reduce((sum, ms) => sum + BigInt(ms), 0n);
  return { ...tally, latency_sum, latency_count: latencies.length };
}

/** Within 1 % of the exact ones; none if the query is about sums only. */
export function assertPercentiles(
  { measures }: Tally,
  { sumsOnly }: TallyQuery,
  latencies: readonly number[],
): void {
  for (const percent of [50, 90, 95, 99]) {
    const rank = Math.max(1, Math.ceil((latencies.length * percent) / 100));
    const exact = sumsOnly ? null : (latencies[rank - 1] ?? null);
    const found = percentile(measures.latencies, percent);
    if (exact === null || found === null) assert.equal(found, exact);
    else assert.ok(Math.abs(found - exact) <= exact * 0.01, `p${percent}: ${found}, not ${exact}`);
  }
}

/** Costs in the tests have at most 12 decimals. */
function picosOf(dollars: number): bigint {
  const [whole = '0', fraction = ''] = dollars.toFixed(12).split('.');
  return BigInt(whole) * 1_000_000_000_000n + BigInt(fraction);
}

function startOf(
  interval: 'hour' | 'day' | 'week' | 'month',
  us: number,
  timeZone: string,
): number {
  const time = Temporal.Instant.fromEpochMilliseconds(Math.floor(us / 1000)).toZonedDateTimeISO(
    timeZone,
  );
  if (interval === 'hour') return hourStart(time) * 1000;
  const date = time.toPlainDate();
  const first =
    interval === 'day'
      ? date
      : interval === 'week'
        ? date.subtract({ days: date.dayOfWeek - 1 })
        : date.with({ day: 1 });
  return first.toZonedDateTime(timeZone).epochMilliseconds * 1000;
}

const hourStarts = new Map<string, number>();

/** Steps back a minute at a time while the local clock shows the same hour and the offset stays the same. */
function hourStart(time: Temporal.ZonedDateTime): number {
  const minute = time.round({ smallestUnit: 'minute', roundingMode: 'floor' });
  const known = hourStarts.get(minute.toString());
  if (known !== undefined) return known;
  const start = stepBack(minute);
  hourStarts.set(minute.toString(), start);
  return start;
}

function stepBack(time: Temporal.ZonedDateTime): number {
  let start = time;
  for (;;) {
    const before = start.subtract({ minutes: 1 });
    const isSame =
      before.hour === time.hour && before.offset === time.offset && before.day === time.day;
    if (!isSame) return start.epochMilliseconds;
    start = before;
  }
}
