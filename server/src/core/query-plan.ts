import { daysPerWeek, firstOfMonth, mondayOf } from './calendar.ts';
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

/** Chooses the smallest set that has every field of the query, and tiles the range with whole months, weeks, days and hours. */
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
    ...tilesOfDays(firstDay, endDay, coarseGrains(interval, grains)),
    { ...hours, fromBucket: daysToUs / usPerSecond },
  ].filter(({ fromBucket, toBucket }) => fromBucket < toBucket);
  return hasHours || tiles.every(({ grain }) => grain !== grainNumbers.hour) ? tiles : null;
}

/** The grains coarser than a day that fit into the intervals of a query. */
function coarseGrains(interval: TallyQuery['interval'], grains: readonly Grain[]): CoarseGrain[] {
  return (['month', 'week'] as const).filter(
    (grain) => grains.includes(grain) && (interval === null || interval === grain),
  );
}

type CoarseGrain = 'month' | 'week';

/** Whole months, then whole weeks before and after them, then the days that are left. */
function tilesOfDays(
  firstDay: number,
  endDay: number,
  [coarsest, ...finer]: readonly CoarseGrain[],
): Tile[] {
  if (firstDay >= endDay) return [];
  if (coarsest === undefined) {
    return [{ grain: grainNumbers.day, fromBucket: firstDay, toBucket: endDay }];
  }
  const [fromBucket, toBucket] =
    coarsest === 'month'
      ? [firstOfMonth(firstDay - 1, 1), firstOfMonth(endDay)]
      : [mondayOf(firstDay + daysPerWeek - 1), mondayOf(endDay)];
  if (fromBucket >= toBucket) return tilesOfDays(firstDay, endDay, finer);
  return [
    ...tilesOfDays(firstDay, fromBucket, finer),
    { grain: grainNumbers[coarsest], fromBucket, toBucket },
    ...tilesOfDays(toBucket, endDay, finer),
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
  const grain = interval;
  if (!grains.includes(grain)) return null;
  return [{ grain: grainNumbers[grain], ...everyBucket }];
}

export const tileOfAllTime: Tile = {
  grain: grainNumbers.all,
  fromBucket: allTimeBucket,
  toBucket: allTimeBucket + 1,
};

/** No bucket is outside. Both numbers can be stored as 64-bit integers. */
const everyBucket = { fromBucket: -(2 ** 40), toBucket: 2 ** 40 };
