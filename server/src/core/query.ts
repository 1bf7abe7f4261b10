import type { Measures } from './measures.ts';
import { eventUs } from './rollup.ts';
import type { CountedTrace } from './rollup.ts';
import type { LabelName } from './trace-fields.ts';

/** Fields by which traces can be filtered and grouped. */
export type QueryField = LabelName | 'status';

/** For each field the accepted values, null for "not set"; or `set` for any value. A trace must match every field. */
export type TraceFilter = Readonly<Partial<Record<QueryField, readonly (string | null)[] | 'set'>>>;

/** From `fromUs`, included, to `toUs`, excluded. */
export interface TimeRange {
  fromUs: number;
  toUs: number;
}

export type Interval = 'hour' | 'day' | 'week' | 'month';

/** A question about sums. */
export interface TallyQuery {
  filter: TraceFilter;
  groupBy: readonly QueryField[];
  /** By the time of the call; null for all time. */
  range: TimeRange | null;
  /** Sums per hour, day, week or month of the team; null for one sum over the whole range. */
  interval: Interval | null;
  /** Without latency histograms, for questions without percentiles: they are answered several times as fast. */
  sumsOnly?: boolean;
}

/** The sums of one group, in one interval if the query has intervals. */
export interface Tally {
  /** The values of `groupBy`, in its order. */
  group: readonly (string | null)[];
  /** Where the interval begins; null if the query has none. */
  startUs: number | null;
  measures: Measures;
}

export function matches(filter: TraceFilter, values: Partial<Record<QueryField, string | null>>) {
  for (const [field, accepted] of Object.entries(filter)) {
    const value = values[field as QueryField] ?? null;
    if (accepted === 'set' ? value === null : !accepted.includes(value)) return false;
  }
  return true;
}

export function isInRange(range: TimeRange | null, us: number): boolean {
  return range === null || (us >= range.fromUs && us < range.toUs);
}

export function isAskedFor({ filter, range }: TallyQuery, trace: CountedTrace): boolean {
  return isInRange(range, eventUs(trace)) && matches(filter, trace);
}
