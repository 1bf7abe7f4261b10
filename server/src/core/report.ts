import type { Calendar } from './calendar.ts';
import { nextHour } from './calendar.ts';
import { addMeasures, noMeasures, subtractMeasures } from './measures.ts';
import type { Measures } from './measures.ts';
import type { Interval, Tally, TallyQuery } from './query.ts';
import { recordFields } from './record-fields.ts';
import type { RecordField, RecordName } from './record-fields.ts';
import { compareGroups, firstDayOf, startOf } from './tally-sheet.ts';

/** The answer to `/analytics/query`: rows and `other` together are the totals. */
export interface Report {
  /** By time, then by the rank of the group. */
  rows: Tally[];
  /** The groups past the limit: one tally, or one per interval. */
  other: Tally[];
  totals: Measures;
  /** The groups of the rows, best first. */
  groups: readonly Group[];
}

/** Groups are ranked by their sums over the whole range. */
export interface RankOrder {
  by: RecordName;
  isDescending: boolean;
}

type Group = Tally['group'];

/** Keeps the first groups of a list in any order, and adds up the others, so that long lists need little memory. */
export class Ranking {
  readonly #order: RankOrder;
  readonly #groupsMax: number;
  #first: Tally[] = [];
  readonly #other: Tally = { group: [], startUs: null, measures: noMeasures() };
  readonly #totals = noMeasures();

  constructor(order: RankOrder, groupsMax: number) {
    this.#order = order;
    this.#groupsMax = groupsMax;
  }

  add(tally: Tally): void {
    addMeasures(this.#totals, tally.measures);
    this.#first.push(tally);
    if (this.#first.length >= 2 * this.#groupsMax + sparePlaces) this.#cut();
  }

  report(): Report {
    this.#cut();
    const other = this.#other.measures.calls > 0 ? [this.#other] : [];
    const groups = this.#first.map(({ group }) => group);
    return { rows: this.#first, other, totals: this.#totals, groups };
  }

  #cut(): void {
    const ranked = rankedTallies(this.#order, this.#first);
    for (const { measures } of ranked.splice(this.#groupsMax)) {
      addMeasures(this.#other.measures, measures);
    }
    this.#first = ranked;
  }
}

const sparePlaces = 1_000;

/** The report on all tallies of a query. */
export function reportOn(
  { interval }: Pick<TallyQuery, 'interval'>,
  tallies: readonly Tally[],
  order: RankOrder,
  groupsMax: number,
): Report {
  if (interval !== null) return reportByInterval(tallies, order, groupsMax);
  const ranking = new Ranking(order, groupsMax);
  for (const tally of tallies) ranking.add(tally);
  return ranking.report();
}

export function rankedTallies(order: RankOrder, tallies: readonly Tally[]): Tally[] {
  const field: RecordField = recordFields[order.by];
  return rankedBy(order, tallies, ({ measures }) => field.valueOf(measures));
}

/** Best first. Equal ones are in the order of their names. */
export function rankedBy<T extends { group: Group }>(
  order: RankOrder,
  items: Iterable<T>,
  valueOf: (item: T) => Value,
): T[] {
  const sign = order.isDescending ? -1 : 1;
  return Array.from(items, (item) => ({ item, value: valueOf(item) }))
    .sort(
      (a, b) =>
        sign * compareValues(a.value, b.value, order) || compareGroups(a.item.group, b.item.group),
    )
    .map(({ item }) => item);
}

type Value = ReturnType<RecordField['valueOf']>;

/** Groups without a value come last in either order. */
function compareValues(a: Value, b: Value, { isDescending }: RankOrder): number {
  if (a === b) return 0;
  if (a === null) return isDescending ? -1 : 1;
  if (b === null) return isDescending ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function reportByInterval(tallies: readonly Tally[], order: RankOrder, groupsMax: number): Report {
  const groups = rankedGroups(tallies, order).slice(0, groupsMax);
  const ranks = new Map(groups.map((group, i) => [nameOf(group), i]));
  const rankOf = ({ group }: Tally): number => ranks.get(nameOf(group)) ?? Infinity;
  const rows = tallies
    .filter((tally) => rankOf(tally) < groupsMax)
    .sort((a, b) => byStart(a, b) || rankOf(a) - rankOf(b));
  const others = tallies.filter((tally) => rankOf(tally) >= groupsMax);
  return { rows, other: sumsByStart(others), totals: sumOf(tallies), groups };
}

/** The same if only the tallies of the first groups are known, and those of all groups together. */
export function reportWithRest(
  tallies: readonly Tally[],
  together: readonly Tally[],
  order: RankOrder,
): Report {
  const { rows, groups } = reportByInterval(tallies, order, Infinity);
  const known = new Map(sumsByStart(rows).map((tally) => [tally.startUs, tally]));
  const other = together
    .map(({ startUs, measures }): Tally => {
      const own = known.get(startUs);
      return { group: [], startUs, measures: restOf(measures, own ? [own] : []) };
    })
    .filter(({ measures }) => measures.calls > 0)
    .sort(byStart);
  return { rows, other, totals: sumOf(together), groups };
}

/** What is left of a whole without some of its parts. */
export function restOf(whole: Measures, parts: readonly Tally[]): Measures {
  const rest = noMeasures();
  addMeasures(rest, whole);
  for (const { measures } of parts) subtractMeasures(rest, measures);
  return rest;
}

function rankedGroups(tallies: readonly Tally[], order: RankOrder): Group[] {
  const byGroup = Map.groupBy(tallies, ({ group }) => nameOf(group));
  const sums = [...byGroup.values()].map((own): Tally => ({
    group: own[0]?.group ?? [],
    startUs: null,
    measures: sumOf(own),
  }));
  return rankedTallies(order, sums).map(({ group }) => group);
}

function sumsByStart(tallies: readonly Tally[]): Tally[] {
  const byTime = Map.groupBy(tallies, ({ startUs }) => startUs);
  return [...byTime]
    .map(([startUs, own]): Tally => ({ group: [], startUs, measures: sumOf(own) }))
    .sort(byStart);
}

function sumOf(tallies: readonly Tally[]): Measures {
  const sum = noMeasures();
  for (const { measures } of tallies) addMeasures(sum, measures);
  return sum;
}

function nameOf(group: Group): string {
  return JSON.stringify(group);
}

function byStart(a: Tally, b: Tally): number {
  return (a.startUs ?? 0) - (b.startUs ?? 0);
}

/** Where the interval after the one that begins here begins. */
export function nextStart(interval: Interval, startUs: number, calendar: Calendar): number {
  if (interval === 'hour') return nextHour(calendar, startUs) * usPerSecond;
  const day = calendar.dayOf(startUs);
  // Longer than any interval, but not as long as two.
  const daysLater = { day: 1, week: 7, month: 31 }[interval];
  return calendar.startOfDay(firstDayOf(interval, day + daysLater));
}

const usPerSecond = 1_000_000;

/** The beginnings of the intervals of a range; null if there are more than `countMax`. */
export function startsIn(
  interval: Interval,
  { fromUs, toUs }: { fromUs: number; toUs: number },
  calendar: Calendar,
  countMax: number,
): number[] | null {
  const starts: number[] = [];
  for (let at = startOf(interval, fromUs, calendar); at < toUs;) {
    if (starts.length === countMax) return null;
    starts.push(at);
    at = nextStart(interval, at, calendar);
  }
  return starts;
}

/** Adds tallies without calls, so that each group of the rows, and `other` if there is one, has every interval. */
export function fillWithZeros(report: Report, starts: readonly number[]): Report {
  const { rows, other, groups } = report;
  return {
    ...report,
    rows: filled(rows, groups, starts),
    other: other.length === 0 ? [] : filled(other, [[]], starts),
  };
}

function filled(
  tallies: readonly Tally[],
  groups: readonly Group[],
  starts: readonly number[],
): Tally[] {
  const known = new Map(tallies.map((tally) => [`${tally.startUs}${nameOf(tally.group)}`, tally]));
  return starts.flatMap((startUs) =>
    groups.map(
      (group) =>
        known.get(`${startUs}${nameOf(group)}`) ?? { group, startUs, measures: noMeasures() },
    ),
  );
}
