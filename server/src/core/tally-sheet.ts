import type { Calendar } from './calendar.ts';
import { grainNumbers } from './dimensions.ts';
import { MeasuresBatch, addMeasures, costOf, noMeasures } from './measures.ts';
import { isAskedFor, matches } from './query.ts';
import type { Interval, QueryField, Tally, TallyQuery } from './query.ts';
import type { Tile } from './query-plan.ts';
import { eventUs } from './rollup.ts';
import type { CountedTrace, Rollup } from './rollup.ts';

type Values = Partial<Record<QueryField, string | null>>;

/** Gathers the answer to one query from rollups, from traces, or from both. */
export class TallySheet {
  readonly #query: TallyQuery;
  readonly #calendar: Calendar;
  readonly #tallies = new Map<string, { tally: Tally; batch: MeasuresBatch | null }>();

  constructor(query: TallyQuery, calendar: Calendar) {
    this.#query = query;
    this.#calendar = calendar;
  }

  /** The number of tallies so far. */
  get size(): number {
    return this.#tallies.size;
  }

  /** A rollup of the planned set. The caller has checked that its bucket is in a tile. */
  addRollup({ grain, bucket, group, measures }: Omit<Rollup, 'set'>): void {
    if (!matches(this.#query.filter, group)) return;
    const us = grain === grainNumbers.day ? this.#calendar.startOfDay(bucket) : bucket * 1_000_000;
    addMeasures(this.#at(group, us).tally.measures, measures);
  }

  /** Adds a trace if the query asks for it. */
  addTrace(trace: CountedTrace): void {
    if (!isAskedFor(this.#query, trace)) return;
    const found = this.#at(trace, eventUs(trace));
    found.batch ??= new MeasuresBatch();
    found.batch.add(trace, costOf(trace));
  }

  /** By calls descending, then by group, then by time. Can be read once. */
  tallies(): Tally[] {
    const tallies = [...this.#tallies.values()].map(({ tally, batch }) => {
      if (batch) addMeasures(tally.measures, batch.total());
      return tally;
    });
    return tallies.sort(byCalls);
  }

  #at(values: Values, us: number) {
    const { groupBy } = this.#query;
    const startUs = this.#startOf(us);
    const group = groupBy.map((field) => values[field] ?? null);
    const name = `${startUs}\u0000${group.map((value) => value ?? '\u0001').join('\u0000')}`;
    let found = this.#tallies.get(name);
    if (!found) {
      found = { tally: { group, startUs, measures: noMeasures() }, batch: null };
      this.#tallies.set(name, found);
    }
    return found;
  }

  #startOf(us: number): number | null {
    const { interval } = this.#query;
    return interval === null ? null : startOf(interval, us, this.#calendar);
  }
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
  // The first of January 1970 was a Thursday.
  if (interval === 'week') return day - ((((day + 3) % 7) + 7) % 7);
  const date = new Date(day * msPerDay);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / msPerDay;
}

const msPerDay = 86_400_000;

/** Whether a bucket is in one of the tiles of its grain. */
export function isInTiles(tiles: readonly Tile[], grain: number, bucket: number): boolean {
  return tiles.some(
    (tile) => tile.grain === grain && bucket >= tile.fromBucket && bucket < tile.toBucket,
  );
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
    return Buffer.compare(Buffer.from(value), Buffer.from(other));
  }
  return 0;
}
