import { firstOfMonth, mondayOf } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { MeasuresBatch } from './measures.ts';
import { isAskedFor } from './query.ts';
import type { Interval, QueryField, Tally, TallyQuery } from './query.ts';
import { costOf } from './trace-cost.ts';
import { eventUs } from './rollup.ts';
import type { CountedTrace } from './rollup.ts';

type Values = Partial<Record<QueryField, string | null>>;

interface SheetEntry extends Omit<Tally, 'measures'> {
  batch: MeasuresBatch;
}

/** Gathers the answer to one query from traces. */
export class TallySheet {
  readonly #query: TallyQuery;
  readonly #calendar: Calendar;
  readonly #entries = new Map<string, SheetEntry>();

  constructor(query: TallyQuery, calendar: Calendar) {
    this.#query = query;
    this.#calendar = calendar;
  }

  /** The number of tallies so far. */
  get size(): number {
    return this.#entries.size;
  }

  /** Adds a trace if the query asks for it. */
  addTrace(trace: CountedTrace): void {
    if (isAskedFor(this.#query, trace)) this.addMatching(trace);
  }

  /** Adds a trace that the query asks for. */
  addMatching(trace: CountedTrace): void {
    const values: Values = trace;
    const group = this.#query.groupBy.map((field) => values[field] ?? null);
    const { interval } = this.#query;
    const startUs = interval === null ? null : startOf(interval, eventUs(trace), this.#calendar);
    const { batch } = this.#entries.getOrInsertComputed(nameOf(group, startUs), () => ({
      group,
      startUs,
      batch: new MeasuresBatch(),
    }));
    batch.add(trace, costOf(trace));
  }

  /** By calls descending, then by group, then by time. */
  tallies(): Tally[] {
    return Array.from(this.#entries.values(), ({ group, startUs, batch }) => ({
      group,
      startUs,
      // A histogram is much longer than the sums.
      measures: this.#query.sumsOnly
        ? { ...batch.total(), latencies: new Map<number, number>() }
        : batch.total(),
    })).sort(byCalls);
  }
}

/** Different for every tally of a query. Labels cannot contain control characters. Most are one label, which is not copied. */
function nameOf(group: Tally['group'], startUs: number | null): string {
  if (startUs === null && group.length === 1) return group[0] ?? '\u0001';
  let name = startUs === null ? '' : String(startUs);
  for (const value of group) name += `\u0000${value ?? '\u0001'}`;
  return name;
}

/** Where the interval that contains this time begins. */
export function startOf(interval: Interval, us: number, calendar: Calendar): number {
  if (interval === 'hour') return calendar.hourOf(us) * 1_000_000;
  return calendar.startOfDay(firstDayOf(interval, calendar.dayOf(us)));
}

/** False if the tallies were added up in another time zone. */
export function areStartsOf(
  interval: Interval,
  calendar: Calendar,
  tallies: readonly Tally[],
): boolean {
  return tallies.every(
    ({ startUs }) => startUs !== null && startOf(interval, startUs, calendar) === startUs,
  );
}

/** The first day of the interval that contains a day. Weeks begin on Monday. */
export function firstDayOf(interval: 'day' | 'week' | 'month', day: number): number {
  if (interval === 'day') return day;
  return interval === 'week' ? mondayOf(day) : firstOfMonth(day);
}

export function byCalls(a: Tally, b: Tally): number {
  return (
    b.measures.calls - a.measures.calls ||
    compareGroups(a.group, b.group) ||
    (a.startUs ?? 0) - (b.startUs ?? 0)
  );
}

/** By UTF-8 bytes, as the stores sort; null first. */
export function compareGroups(a: Tally['group'], b: Tally['group']): number {
  for (const [i, value] of a.entries()) {
    const other = b[i] ?? null;
    if (value === other) continue;
    if (value === null || other === null) return value === null ? -1 : 1;
    return compareTexts(value, other);
  }
  return 0;
}

/** By code points, which is the order of UTF-8 bytes. Code points above all others are two surrogates in a string. */
export function compareTexts(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [own, other] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (own === other) continue;
    const isAbove = isSurrogate(own);
    return isAbove === isSurrogate(other) ? own - other : isAbove ? 1 : -1;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
