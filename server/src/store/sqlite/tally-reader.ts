import type { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import type { Calendar } from '../../core/calendar.ts';
import { grainNumbers } from '../../core/dimensions.ts';
import { isInRange } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { planQuery, tileOfAllTime, tilesOutside } from '../../core/query-plan.ts';
import type { QueryPlan, Tile } from '../../core/query-plan.ts';
import { startOfBucket } from '../../core/rollup.ts';
import type { Rollup, RollupFold } from '../../core/rollup.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import type { StoredRollup } from '../../core/tally-sheet.ts';
import { columnOf } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import { prepareArrays } from './counted-traces.ts';
import { KeptRollups, isKept, openRowCount } from './kept-rollups.ts';
import { PackedRollups, isPacked } from './packed-rollups.ts';
import type { KeptBounds } from './packed-rollups.ts';
import { PackedSums } from './packed-sums.ts';
import type { RollupPlan } from './rollup-values.ts';
import { StatementCache } from './statement-cache.ts';
import { TailCache } from './tail-cache.ts';
import { inSnapshot, prepareSnapshots } from './team-snapshot.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { namedReads, tileKey, tileReads } from './tile-sql.ts';
import type { TileReads } from './tile-sql.ts';

/** How much one read may take. */
export interface ReadBounds {
  tailRowsMax: number;
  /** Rollups that are read, whether they match the filter of the query or not. */
  rollupRowsMax: number;
}

/** How much is kept in memory, and which way to read rollups is best. */
export type ReaderBounds = KeptBounds &
  Readonly<Record<'bucketsOfAllTime' | 'fewGroupsMax', number>>;

/** Answers queries on one connection, from rollups and the tail after them. */
export class TallyReader {
  readonly #db: DatabaseSync;
  readonly #bounds: ReaderBounds;
  readonly #snapshotOf;
  readonly #tails: TailCache;
  readonly #statements: StatementCache;
  readonly #countRows;
  readonly #kept: KeptRollups;
  readonly #packed: PackedRollups;

  constructor(db: DatabaseSync, bounds: ReaderBounds = limits) {
    this.#db = db;
    this.#bounds = bounds;
    this.#snapshotOf = prepareSnapshots(db);
    this.#tails = new TailCache(db);
    this.#kept = new KeptRollups(db);
    this.#packed = new PackedRollups(db, bounds);
    this.#statements = new StatementCache((sql) => prepareArrays(db, sql));
    this.#countRows = openRowCount(db);
  }

  timeZone(teamId: string): string {
    const snapshot = this.#snapshotOf(teamId);
    if (!snapshot) throw new Error(`there is no team ${teamId}`);
    return snapshot.marks.timeZone;
  }

  /** Runs `read` in a transaction, with the plan for the query in the team's time zone. Null if there is no such team. */
  withPlan<T>(
    teamId: string,
    query: TallyQuery,
    read: (team: TeamSnapshot, plan: QueryPlan, calendar: Calendar) => T,
  ): T | null {
    return inSnapshot(this.#db, () => {
      const team = this.#snapshotOf(teamId);
      if (!team) return null;
      const calendar = calendarOf(team.marks.timeZone);
      return read(team, planQuery(query, calendar), calendar);
    });
  }

  /** Prepares for questions that were asked before, a little at a time. */
  *prepare(): Generator<undefined, void> {
    yield* this.#packed.mergeRuns();
  }

  /** All tallies, or null if that would take more than the bounds allow. */
  gather(teamId: string, query: TallyQuery, bounds: ReadBounds): Tally[] | null {
    const found = this.withPlan(teamId, query, (team, plan, calendar) => {
      if (plan.kind === 'traces') return { tallies: null };
      const { speed } = plan.set;
      if (this.#tails.rowsOf(team, speed) > bounds.tailRowsMax) return { tallies: null };
      const sheet = new TallySheet(query, calendar);
      if (!this.#addBriefly(sheet, team, plan, query, bounds)) return { tallies: null };
      const tail = [this.#tails.foldOf(team, speed)];
      const isAll = addTail(sheet, tail, plan, query, calendar, limits.tallyRowsMax);
      return { tallies: isAll ? sheet.tallies() : null };
    });
    return found === null ? [] : found.tallies;
  }

  /** Adds the rollups of a plan. False if there are too many. */
  #addBriefly(
    sheet: TallySheet,
    team: TeamSnapshot,
    plan: RollupPlan,
    query: TallyQuery,
    { rollupRowsMax }: ReadBounds,
  ): boolean {
    const reads = tileReads(query, plan);
    let left = rollupRowsMax;
    for (const tile of plan.tiles) {
      if (query.sumsOnly && isKept(tile) && !reads.areFew) {
        const kept = this.#kept.ofTile(team, plan, tile, left);
        if (!kept) return false;
        for (const rollups of kept.rollups) for (const rollup of rollups) sheet.addKept(rollup);
        left -= kept.read;
      } else {
        const areFew = reads.areFew || hasTwoRollups(plan, tile);
        if (!areFew) left -= this.#countRows(team, plan, tile, left);
        if (left < 0) return false;
        for (const rollup of this.#rollups(team, plan, query, reads, tile)) sheet.addStored(rollup);
      }
      if (sheet.size > limits.tallyRowsMax) return false;
    }
    return true;
  }

  /**
   * Adds up the rollups of a plan and the tail after them, in the transaction of the snapshot. Null if there are more than `talliesMax`.
   * If the query is part of a larger one, the rest of `whole` can be added to the sheet later.
   */
  sum(
    team: TeamSnapshot,
    plan: RollupPlan,
    query: TallyQuery,
    calendar: Calendar,
    talliesMax: number,
    whole = query,
  ): TallySheet | null {
    const reads = this.#readsOf(team, plan, query);
    const ways = reads.areFew ? [] : this.#packedWays(team, plan, query, reads, talliesMax);
    ways.push((sheet) => this.#addRows(sheet, team, plan, query, reads, plan.tiles, talliesMax));
    for (const add of ways) {
      const sheet = new TallySheet(whole, calendar);
      const added = add(sheet);
      if (added === 'another way') continue;
      if (added === 'too many') return null;
      const tail = this.tail(team, plan);
      return addTail(sheet, tail, plan, query, calendar, talliesMax) ? sheet : null;
    }
    return null;
  }

  /** If few groups match the filter, they are found among the sums over all time, so that only their rollups are read. */
  #readsOf(team: TeamSnapshot, plan: RollupPlan, query: TallyQuery): TileReads {
    const reads = tileReads(query, plan);
    const isNarrow = Object.keys(query.filter).some((field) => field !== 'status');
    if (reads.areNamed || !isNarrow) return reads;
    const { fewGroupsMax } = this.#bounds;
    const read = this.#statements.get(
      `${reads.sqlOf('hex(r.group_hash)')} limit ${fewGroupsMax + 1}`,
    );
    const allTime = tileKey(team, plan, tileOfAllTime);
    const found = read.all(...allTime, ...reads.values) as unknown as [string][];
    return found.length > fewGroupsMax ? reads : namedReads(found.flat());
  }

  /** The ways to add up rollups that are kept in memory, best first. */
  #packedWays(
    team: TeamSnapshot,
    plan: RollupPlan,
    query: TallyQuery,
    reads: TileReads,
    talliesMax: number,
  ): ((sheet: TallySheet) => Added | 'another way')[] {
    const hasIntervals = query.interval !== null;
    const how = { isKeptOnly: reads.areNamed, isOneSum: !hasIntervals };
    const addPacked = (sheet: TallySheet, tiles: readonly Tile[]): Added | 'another way' => {
      const sums = new PackedSums(sheet, hasIntervals, talliesMax);
      for (const tile of tiles) {
        for (const bucket of this.#packed.ofTile(team, plan, tile, how)) {
          if (bucket === null) return 'another way';
          if (!sums.add(tile.grain, bucket)) return 'too many';
        }
      }
      return 'all';
    };
    const packed = plan.tiles.filter(isPacked);
    const others = plan.tiles.filter((tile) => !isPacked(tile));
    const addOthers = (sheet: TallySheet): Added =>
      this.#addRows(sheet, team, plan, query, reads, others, talliesMax);
    const ways = [
      (sheet: TallySheet) => {
        const added = addPacked(sheet, packed);
        return added === 'all' ? addOthers(sheet) : added;
      },
    ];
    const outside = hasIntervals ? null : this.#outsideOf(team, plan, packed);
    if (!outside) return ways;
    return [
      (sheet) => {
        const rest = sheet.empty();
        const isAll = addPacked(sheet, [tileOfAllTime]) === 'all';
        if (!isAll || addPacked(rest, outside) !== 'all') return 'another way';
        sheet.subtract(rest);
        return addOthers(sheet);
      },
      ...ways,
    ];
  }

  /**
   * The tiles before and after those of a plan, if they have far fewer buckets: then it takes less time to subtract them from the sums over
   * all time. Null if they do not.
   */
  #outsideOf(team: TeamSnapshot, plan: RollupPlan, tiles: readonly Tile[]): Tile[] | null {
    const outside = tilesOutside(tiles, plan.set);
    const countOf = (some: readonly Tile[]): number =>
      some.reduce((sum, tile) => sum + this.#packed.countBuckets(team, plan, tile), 0);
    const isWorthIt = outside && countOf(outside) + this.#bounds.bucketsOfAllTime < countOf(tiles);
    return isWorthIt ? outside : null;
  }

  #addRows(
    sheet: TallySheet,
    team: TeamSnapshot,
    plan: RollupPlan,
    query: TallyQuery,
    reads: TileReads,
    tiles: readonly Tile[],
    talliesMax: number,
  ): Added {
    for (const tile of tiles) {
      for (const rollup of this.#rollups(team, plan, query, reads, tile)) {
        sheet.addStored(rollup);
        if (sheet.size > talliesMax) return 'too many';
      }
    }
    return 'all';
  }

  /** The sums of the traces that are not rolled up yet, however many they are. */
  tail(team: TeamSnapshot, { set }: RollupPlan): Iterable<RollupFold> {
    return this.#tails.parts(team, set);
  }

  *#rollups(
    team: TeamSnapshot,
    plan: RollupPlan,
    query: TallyQuery,
    { sqlOf, values }: TileReads,
    tile: Tile,
  ): Generator<StoredRollup> {
    const statement = this.#statements.get(sqlOf(storedColumns(query)));
    for (const row of statement.iterate(...tileKey(team, plan, tile), ...values)) {
      const [bucket, calls, isError, sums, latencies, ...group] = row as unknown as StoredValues;
      yield { grain: tile.grain, bucket, calls, isError: isError === 1, sums, latencies, group };
    }
  }
}

/** The sums over all time of the set without fields: those of successes and those of errors. They are read after almost every write. */
function hasTwoRollups({ set }: RollupPlan, { grain }: Tile): boolean {
  return set.fields.length === 0 && grain === grainNumbers.all;
}

/** Whether the answer has few enough tallies. */
type Added = 'all' | 'too many';

type StoredValues = readonly [
  bucket: number,
  calls: number,
  isError: number,
  sums: Uint8Array,
  latencies: Uint8Array | null,
  ...group: (string | null)[],
];

/** Only what the query needs: each column of each row takes time. */
function storedColumns({ groupBy, sumsOnly }: TallyQuery): string {
  const status = `iif(g.is_error, 'error', 'success')`;
  return [
    'r.bucket',
    'r.calls',
    'g.is_error',
    'r.sums',
    sumsOnly ? 'null' : 'r.latencies',
    ...groupBy.map((field) => (field === 'status' ? status : `g.${columnOf(field)}`)),
  ].join(', ');
}

/**
 * The rollups of the tail that the query asks for, in the finest grain. If a plan uses rollups, every bound of its range is a bound of
 * such a bucket.
 */
export function* tailRollups(
  tail: Iterable<RollupFold>,
  { set }: RollupPlan,
  { range }: TallyQuery,
  calendar: Calendar,
): Generator<Rollup> {
  for (const fold of tail) {
    for (const rollup of fold.finest(set.number)) {
      if (isInRange(range, startOfBucket(rollup.grain, rollup.bucket, calendar))) yield rollup;
    }
  }
}

/** False if the sheet has more than `talliesMax` tallies. */
function addTail(
  sheet: TallySheet,
  tail: Iterable<RollupFold>,
  plan: RollupPlan,
  query: TallyQuery,
  calendar: Calendar,
  talliesMax: number,
): boolean {
  for (const rollup of tailRollups(tail, plan, query, calendar)) {
    sheet.addRollup(rollup);
    if (sheet.size > talliesMax) return false;
  }
  return sheet.size <= talliesMax;
}
