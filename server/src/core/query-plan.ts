import { daysPerWeek, mondayOf } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { dimensionSets, grainNumbers } from './dimensions.ts';
import type { DimensionSet, Grain } from './dimensions.ts';
import { hasMetadataFilter } from './query.ts';
import type { QueryField, TallyQuery, TimeRange } from './query.ts';
import { allTimeBucket } from './rollup.ts';

/** A part of the range that whole buckets cover: from the first bucket, included, to the last, excluded. */
export interface Tile {
  grain: number;
  fromBucket: number;
  toBucket: number;
}

/** How a query is answered: from the rollups of one set, or from the traces themselves. */
export type QueryPlan =
  | { kind: 'rollups'; set: DimensionSet; tiles: readonly Tile[] }
  | { kind: 'traces' };

/** Chooses the smallest set that has every field of the query, and tiles the range with whole weeks, days and hours. */
export function planQuery(query: TallyQuery, calendar: Calendar): QueryPlan {
  if (hasMetadataFilter(query)) return { kind: 'traces' };
  const fields = fieldsOf(query);
  for (const set of dimensionSets) {
    if (!fields.every((field) => (set.fields as readonly QueryField[]).includes(field))) continue;
    const tiles = tilesOf(query, calendar, set.grains);
    if (tiles) return { kind: 'rollups', set, tiles };
  }
  return { kind: 'traces' };
}

/** Whole days that rollups cover, and the parts of days before and after them. */
export interface SplitQuery {
  plan: Extract<QueryPlan, { kind: 'rollups' }>;
  days: TallyQuery;
  edges: readonly TallyQuery[];
}

/**
 * Splits a query that is planned for traces only because its range does not begin or end with a day, so that no more than the traces of two
 * days have to be read. Null if that is not the reason.
 */
export function splitAtDays(query: TallyQuery, calendar: Calendar): SplitQuery | null {
  const { range, interval } = query;
  if (range === null || interval === 'hour') return null;
  const fromUs = calendar.startOfDay(firstWholeDay(range.fromUs, calendar));
  const toUs = calendar.startOfDay(calendar.dayOf(range.toUs));
  if (fromUs >= toUs) return null;
  const days = { ...query, range: { fromUs, toUs } };
  const plan = planQuery(days, calendar);
  if (plan.kind === 'traces') return null;
  const edges = [
    { fromUs: range.fromUs, toUs: fromUs },
    { fromUs: toUs, toUs: range.toUs },
  ].filter((edge) => edge.fromUs < edge.toUs);
  return { plan, days, edges: edges.map((edge) => ({ ...query, range: edge })) };
}

/** Every group of every set has a status. */
function fieldsOf({ filter, groupBy }: TallyQuery): QueryField[] {
  return [...(Object.keys(filter) as QueryField[]), ...groupBy].filter((name) => name !== 'status');
}

/** Null if the grains cannot cover the range exactly. */
function tilesOf(
  { range, interval }: TallyQuery,
  calendar: Calendar,
  grains: readonly Grain[],
): readonly Tile[] | null {
  if (range === null) return tilesOfAllTime(interval, grains);
  if (range.toUs <= range.fromUs) return [];
  const hours = { grain: grainNumbers.hour, ...secondsOf(range) };
  const areHoursWhole = calendar.isHourStart(range.fromUs) && calendar.isHourStart(range.toUs);
  const hasHours = grains.includes('hour') && areHoursWhole;
  if (interval === 'hour') return hasHours ? [hours] : null;
  const firstDay = firstWholeDay(range.fromUs, calendar);
  const endDay = calendar.dayOf(range.toUs);
  const [daysFromUs, daysToUs] = [calendar.startOfDay(firstDay), calendar.startOfDay(endDay)];
  if (firstDay >= endDay) return hasHours ? [hours] : null;
  const tiles = [
    { ...hours, toBucket: daysFromUs / usPerSecond },
    ...tilesOfDays(firstDay, endDay, hasWeeks(interval, grains)),
    { ...hours, fromBucket: daysToUs / usPerSecond },
  ].filter(({ fromBucket, toBucket }) => fromBucket < toBucket);
  return hasHours || tiles.every(({ grain }) => grain !== grainNumbers.hour) ? tiles : null;
}

/** Weeks do not fit into months, and days are not weeks. */
function hasWeeks(interval: TallyQuery['interval'], grains: readonly Grain[]): boolean {
  return grains.includes('week') && (interval === null || interval === 'week');
}

/** Whole weeks, and the days before and after them. */
function tilesOfDays(firstDay: number, endDay: number, withWeeks: boolean): Tile[] {
  const { day, week } = grainNumbers;
  const firstWeek = mondayOf(firstDay + daysPerWeek - 1);
  const endWeek = mondayOf(endDay);
  if (!withWeeks || firstWeek >= endWeek) {
    return [{ grain: day, fromBucket: firstDay, toBucket: endDay }];
  }
  return [
    { grain: day, fromBucket: firstDay, toBucket: firstWeek },
    { grain: week, fromBucket: firstWeek, toBucket: endWeek },
    { grain: day, fromBucket: endWeek, toBucket: endDay },
  ];
}

const usPerSecond = 1_000_000;

function secondsOf({ fromUs, toUs }: TimeRange): Pick<Tile, 'fromBucket' | 'toBucket'> {
  return { fromBucket: fromUs / usPerSecond, toBucket: toUs / usPerSecond };
}

function firstWholeDay(us: number, calendar: Calendar): number {
  const day = calendar.dayOf(us);
  return calendar.startOfDay(day) === us ? day : day + 1;
}

function tilesOfAllTime(
  interval: TallyQuery['interval'],
  grains: readonly Grain[],
): readonly Tile[] | null {
  if (interval === null) return [tileOfAllTime];
  const grain = interval === 'hour' ? 'hour' : hasWeeks(interval, grains) ? 'week' : 'day';
  if (!grains.includes(grain)) return null;
  return [{ grain: grainNumbers[grain], ...everyBucket }];
}

export const tileOfAllTime: Tile = {
  grain: grainNumbers.all,
  fromBucket: allTimeBucket,
  toBucket: allTimeBucket + 1,
};

/** Every bucket before and after some days and weeks of a set, so that both together are all time. Null if they are no such tiles. */
export function tilesOutside(tiles: readonly Tile[], { grains }: DimensionSet): Tile[] | null {
  const areDays = tiles.every(({ grain }) => grain !== grainNumbers.all);
  if (tiles.length === 0 || !areDays) return null;
  const firstDay = Math.min(...tiles.map(({ fromBucket }) => fromBucket));
  const endDay = Math.max(...tiles.map(({ toBucket }) => toBucket));
  const withWeeks = hasWeeks(null, grains);
  return [
    ...tilesOfDays(mondayOf(everyBucket.fromBucket), firstDay, withWeeks),
    ...tilesOfDays(endDay, mondayOf(everyBucket.toBucket), withWeeks),
  ].filter(({ fromBucket, toBucket }) => fromBucket < toBucket);
}

/** No bucket is outside. Both numbers can be stored as 64-bit integers. */
const everyBucket = { fromBucket: -(2 ** 40), toBucket: 2 ** 40 };
