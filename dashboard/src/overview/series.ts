import type { QueryReply, QueryRow, QueryTotals } from '../../../client/src/reading.ts';
import type { StackField } from '../route/route.ts';
import { notSet } from '../view/filters.ts';
import { addDays, addMonths, isDate } from '../view/local-time.ts';
import { localTimeOf, shortDay, spanWords } from '../view/previous-period.ts';
import type { AnsweredRange } from '../view/previous-period.ts';
import type { Interval, Range } from '../view/range.ts';

/** One bar of a chart. */
export interface Bucket {
  /** Its beginning as the API says it: local time with offset. */
  start: string;
  /** `Nov 14`, `Nov 14, 09:00`, `Nov 9 – 15, 2026`, `Nov 2026`. */
  label: string;
  /** The same for an axis, where there is little room. */
  tick: string;
  /** The range whose traces are in it. */
  range: Range;
  totals: QueryTotals;
}

/** A layer of a stacked chart: a model, all others together, or one kind of tokens. */
export interface Layer {
  key: string;
  name: string;
  /** The value to filter by; undefined if there is none. */
  value?: string | null;
  /** Of each bucket. */
  parts: readonly QueryTotals[];
}

const monthFormat = new Intl.DateTimeFormat('en-US', {
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
});

/** The buckets of an answer without groups. */
export function bucketsOf(reply: QueryReply, interval: Interval, asked: Range): Bucket[] {
  const starts = reply.rows.map((row) => row.start ?? '');
  return reply.rows.map((row, index) => {
    const start = starts[index] ?? '';
    const range = bucketRange(start, starts[index + 1] ?? null, interval, reply, asked);
    return { start, range, totals: row, ...wordsOf(start, interval, range) };
  });
}

/** Days are dates, which are easy to read in an address. The first and the last bucket may reach beyond the range. */
function bucketRange(
  start: string,
  next: string | null,
  interval: Interval,
  answered: AnsweredRange,
  asked: Range,
): Range {
  if (interval === 'hour') {
    return { kind: 'between', from: start, to: next ?? answered.to ?? hourAfter(start) };
  }
  const first = start.slice(0, 10);
  const last = addDays(
    interval === 'month' ? addMonths(first, 1) : addDays(first, interval === 'week' ? 7 : 1),
    -1,
  );
  const bounds = asked.kind === 'between' ? asked : null;
  const from = later(first, start, bounds?.from ?? answered.from);
  const to = earlier(last, bounds?.to ?? answered.to);
  return { kind: 'between', from, to };
}

function hourAfter(start: string): string {
  return new Date(Date.parse(start) + 3_600_000).toISOString();
}

/** A bound of the range that lies within the bucket. */
function later(first: string, start: string, bound: string | null): string {
  if (bound === null) return first;
  if (isDate(bound)) return bound > first ? bound : first;
  if (Date.parse(bound) <= Date.parse(start)) return first;
  return bound.slice(11, 19) === '00:00:00' ? bound.slice(0, 10) : bound;
}

function earlier(last: string, bound: string | null): string {
  if (bound === null) return last;
  if (isDate(bound)) return bound < last ? bound : last;
  const date = bound.slice(0, 10);
  if (date > last) return last;
  return bound.slice(11, 19) === '00:00:00' ? addDays(date, -1) : bound;
}

function wordsOf(start: string, interval: Interval, range: Range): { label: string; tick: string } {
  const day = shortDay(start.slice(0, 10));
  const clock = start.slice(11, 16);
  switch (interval) {
    case 'hour':
      return { label: `${day}, ${clock}`, tick: clock === '00:00' ? day : clock };
    case 'day':
      return { label: day, tick: day };
    case 'month': {
      const month = monthFormat.format(Date.parse(`${start.slice(0, 10)}T00:00:00Z`));
      return { label: month, tick: month };
    }
    case 'week':
      return { label: weekWords(range), tick: day };
  }
}

function weekWords(range: Range): string {
  if (range.kind !== 'between' || !isDate(range.from) || !isDate(range.to)) return 'Week';
  const end = `${addDays(range.to, 1)}T00:00:00`;
  return spanWords(localTimeOf(`${range.from}T00:00:00`), localTimeOf(end));
}

export const otherKey = 'other';

/** The layers of an answer with groups, best first; the rest last. Rows without calls are filled with zeros by the server. */
export function layersOf(
  reply: QueryReply,
  field: StackField,
  buckets: readonly Bucket[],
): Layer[] {
  const at = new Map(buckets.map(({ start }, index) => [start, index]));
  const groups = new Map<string, Layer & { parts: QueryTotals[] }>();
  const put = (key: string, layer: Omit<Layer, 'parts'>, row: QueryRow): void => {
    const index = at.get(row.start ?? '');
    let known = groups.get(key);
    if (known === undefined) {
      groups.set(key, (known = { ...layer, parts: buckets.map(() => noTotals) }));
    }
    // The two answers may be from either side of a new hour.
    if (index !== undefined) known.parts[index] = row;
  };
  for (const row of reply.rows) {
    const value = row[field] ?? null;
    const key = `value ${JSON.stringify(value)}`;
    put(key, { key, name: value ?? notSet, value }, row);
  }
  for (const row of reply.other) put(otherKey, { key: otherKey, name: 'other' }, row);
  return [...groups.values()];
}

/** Of no calls. */
export const noTotals: QueryTotals = {
  call_count: 0,
  error_count: 0,
  success_rate: 0,
  total_cost_usd: 0,
  uncosted_calls: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  avg_latency_ms: null,
  p50_latency_ms: null,
  p90_latency_ms: null,
  p95_latency_ms: null,
  p99_latency_ms: null,
};

/** Adds decimals without the noise of floating point: 0.1 + 0.2 is 0.3. */
export function sum(values: readonly number[]): number {
  return Number(values.reduce((total, value) => total + value, 0).toPrecision(15));
}

/** What was read from a cache is part of the input. */
export const tokenKinds = [
  {
    name: 'Input',
    of: (row: QueryTotals) => Math.max(0, row.prompt_tokens - row.cache_read_tokens),
  },
  { name: 'Cached input', of: (row: QueryTotals) => row.cache_read_tokens },
  { name: 'Output', of: (row: QueryTotals) => row.completion_tokens },
] as const;

export const percentiles = [
  { name: 'p50', of: (row: QueryTotals) => row.p50_latency_ms },
  { name: 'p95', of: (row: QueryTotals) => row.p95_latency_ms },
  { name: 'p99', of: (row: QueryTotals) => row.p99_latency_ms },
] as const;
