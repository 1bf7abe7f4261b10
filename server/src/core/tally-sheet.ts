import { mondayOf } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { MeasuresBatch } from './measures.ts';
import { MeasuresSum } from './measures-sum.ts';
import type { CountedMeasures } from './measures-sum.ts';
import { isAskedFor, matcherOf } from './query.ts';
import type { Interval, QueryField, Tally, TallyQuery } from './query.ts';
import type { Tile } from './query-plan.ts';
import { costOf } from './trace-cost.ts';
import { eventUs, startOfBucket } from './rollup.ts';
import type { CountedTrace, Group, Rollup, RollupId } from './rollup.ts';

type Values = Partial<Record<QueryField, string | null>>;

/** A stored rollup that matches the filter, with the values by which the query groups. */
export interface StoredRollup extends CountedMeasures {
  grain: number;
  bucket: number;
  group: Tally['group'];
}

/** A decoded rollup that is kept for other queries. */
export interface KeptRollup extends Omit<RollupId, 'set'> {
  sum: MeasuresSum;
}

/** The sum of a group, in one interval if the query has intervals, that is still being ranked. */
export type RankedSum = Pick<SheetEntry, 'group' | 'startUs' | 'sum'>;

interface SheetEntry extends Omit<Tally, 'measures'> {
  sum: MeasuresSum;
  /** Traces that are not in the sum yet. */
  batch: MeasuresBatch | null;
}

/** Gathers the answer to one query from rollups, from traces, or from both. */
export class TallySheet {
  readonly #query: TallyQuery;
  readonly #matches: ReturnType<typeof matcherOf>;
  readonly #calendar: Calendar;
  readonly #entries = new Map<string, SheetEntry>();
  /** Where kept rollups of a group are added, if the query has no interval. */
  readonly #sums = new Map<Group, MeasuresSum | null>();

  constructor(query: TallyQuery, calendar: Calendar) {
    this.#query = query;
    this.#matches = matcherOf(query.filter);
    this.#calendar = calendar;
  }

  /** The number of tallies so far. */
  get size(): number {
    return this.#entries.size;
  }

  /** A rollup of the planned set. The caller has checked that its bucket is in a tile. */
  addRollup({ grain, bucket, group, measures }: Omit<Rollup, 'set'>): void {
    this.sumOf({ grain, bucket, group })?.add(measures);
  }

  /** What the sums of a rollup are added to; null if the query does not ask for its group. */
  sumOf({ grain, bucket, group }: Omit<RollupId, 'set'>): MeasuresSum | null {
    if (!this.#matches(group)) return null;
    return this.#at(this.#groupOf(group), this.#startOfBucket(grain, bucket)).sum;
  }

  /** The same, if it was not decoded yet. */
  addStored(rollup: StoredRollup): void {
    const startUs = this.#startOfBucket(rollup.grain, rollup.bucket);
    this.#at(rollup.group, startUs).sum.addEncoded(rollup);
  }

  /** The same, if it was decoded before, without latencies. */
  addKept(rollup: KeptRollup): void {
    this.#sumOfKept(rollup)?.addSum(rollup.sum);
  }

  /** Many rollups share the object of their group. */
  #sumOfKept(rollup: KeptRollup): MeasuresSum | null {
    if (this.#query.interval !== null) return this.sumOf(rollup);
    let sum = this.#sums.get(rollup.group);
    if (sum === undefined) this.#sums.set(rollup.group, (sum = this.sumOf(rollup)));
    return sum;
  }

  /** Adds a trace if the query asks for it. */
  addTrace(trace: CountedTrace): void {
    if (isAskedFor(this.#query, trace)) this.addMatching(trace);
  }

  /** Adds a trace that the query asks for. */
  addMatching(trace: CountedTrace): void {
    const found = this.#at(this.#groupOf(trace), this.#startOf(eventUs(trace)));
    found.batch ??= new MeasuresBatch();
    found.batch.add(trace, costOf(trace));
  }

  /** By calls descending, then by group, then by time. Can be read once. */
  tallies(): Tally[] {
    return this.unsorted().sort(byCalls);
  }

  /** The same in any order. */
  unsorted(): Tally[] {
    const tallies: Tally[] = [];
    for (const [name, { group, startUs, sum, batch }] of this.#entries) {
      if (batch) sum.add(batch.total());
      tallies.push({ group, startUs, measures: sum.measures() });
      // Not both at once: there may be many, and each may have a histogram.
      this.#entries.delete(name);
    }
    return tallies;
  }

  /** The sum of each group and interval so far, in any order. */
  *sums(): Generator<RankedSum> {
    for (const entry of this.#entries.values()) {
      if (entry.batch) entry.sum.add(entry.batch.total());
      entry.batch = null;
      yield entry;
    }
  }

  /** A sheet for the same query. */
  empty(): TallySheet {
    return new TallySheet(this.#query, this.#calendar);
  }

  /** Takes sums away from this one that are part of it, without latencies if this one has none. What has no calls left is no tally. */
  subtract(part: TallySheet): void {
    for (const [name, { sum }] of part.#entries) {
      const whole = this.#entries.get(name);
      whole?.sum.subtract(sum);
      if (whole?.sum.calls === 0) this.#entries.delete(name);
    }
  }

  #groupOf(values: Values): Tally['group'] {
    return this.#query.groupBy.map((field) => values[field] ?? null);
  }

  #at(group: Tally['group'], startUs: number | null): SheetEntry {
    const name = nameOf(group, startUs);
    let found = this.#entries.get(name);
    if (!found) {
      found = { group, startUs, sum: new MeasuresSum(!this.#query.sumsOnly), batch: null };
      this.#entries.set(name, found);
    }
    return found;
  }

  /** Where the interval of a stored bucket begins. */
  #startOfBucket(grain: number, bucket: number): number | null {
    if (this.#query.interval === null) return null;
    return this.#startOf(startOfBucket(grain, bucket, this.#calendar));
  }

  #startOf(us: number): number | null {
    const { interval } = this.#query;
    return interval === null ? null : startOf(interval, us, this.#calendar);
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
  if (interval === 'week') return mondayOf(day);
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
