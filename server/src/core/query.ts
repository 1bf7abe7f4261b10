import type { Measures } from './measures.ts';
import { eventUs } from './rollup.ts';
import type { CountedTrace } from './rollup.ts';
import type { BoundedName, LabelName } from './trace-fields.ts';

/** Fields by which traces can be filtered and grouped. */
export type QueryField = LabelName | 'status';

/** For each field the accepted values, null for "not set"; or `set` for any value. A trace must match every field. */
export type TraceFilter = Readonly<Partial<Record<QueryField, readonly (string | null)[] | 'set'>>>;

/** For each name of a metadata entry the accepted values, null for "not set". An empty value counts as not set. */
export type MetadataFilter = Readonly<Record<string, readonly (string | null)[]>>;

/** From `fromUs`, included, to `toUs`, excluded. */
export interface TimeRange {
  fromUs: number;
  toUs: number;
}

export type Interval = 'hour' | 'day' | 'week' | 'month';

/** Which traces a question is about. */
export interface TraceCriteria {
  filter: TraceFilter;
  /** Not stored with the narrow columns, so it makes a question slower. */
  metadata?: MetadataFilter;
  /** By the time of the call; null for all time. */
  range: TimeRange | null;
}

/** Which traces a list shows. */
export interface SearchCriteria extends TraceCriteria {
  /** The smallest value of a field. */
  minimums: Readonly<Partial<Record<BoundedName, number>>>;
  /** Text that must be part of a payload other than metadata; null for any. */
  text: string | null;
}

/** A question about sums. */
export interface TallyQuery extends TraceCriteria {
  groupBy: readonly QueryField[];
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

/** Metadata is checked separately: `matchesMetadata`. */
export function isAskedFor({ filter, range }: TraceCriteria, trace: CountedTrace): boolean {
  return isInRange(range, eventUs(trace)) && matches(filter, trace);
}

export function hasMetadataFilter({ metadata = {} }: TraceCriteria): boolean {
  return Object.keys(metadata).length > 0;
}

/** `text` is the metadata of a trace as JSON, or null if it has none. */
export function matchesMetadata({ metadata = {} }: TraceCriteria, text: string | null): boolean {
  const entries = new Map(Object.entries(text === null ? {} : (JSON.parse(text) as object)));
  return Object.entries(metadata).every(([name, accepted]) =>
    accepted.includes((entries.get(name) as string | undefined) || null),
  );
}
