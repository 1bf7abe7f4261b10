import type { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import type { Calendar } from '../../core/calendar.ts';
import { grainNumbers } from '../../core/dimensions.ts';
import { isInRange } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { planQuery } from '../../core/query-plan.ts';
import type { QueryPlan } from '../../core/query-plan.ts';
import type { Rollup, RollupFold } from '../../core/rollup.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { prepareArrays } from './counted-traces.ts';
import { rollupColumns, rollupOfValues } from './rollup-values.ts';
import type { RollupValues } from './rollup-values.ts';
import { StatementCache } from './statement-cache.ts';
import { TailCache } from './tail-cache.ts';
import { inSnapshot, prepareSnapshots } from './team-snapshot.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { inTile, tileKey, tileReads } from './tile-sql.ts';

export type RollupPlan = Extract<QueryPlan, { kind: 'rollups' }>;

/** How much one read may take. */
export interface ReadBounds {
  tailRowsMax: number;
  /** Rollups in the range of the query, whether they match its filter or not. */
  rollupRowsMax: number;
}

/** Answers queries on one connection, from rollups and the tail after them. */
export class TallyReader {
  readonly #db: DatabaseSync;
  readonly #snapshotOf;
  readonly #tails: TailCache;
  readonly #statements: StatementCache;
  readonly #countRows;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#snapshotOf = prepareSnapshots(db);
    this.#tails = new TailCache(db);
    this.#statements = new StatementCache((sql) => prepareArrays(db, sql));
    this.#countRows = prepareArrays(
      db,
      `select count(*) from (select 1 from rollup_rows r where ${inTile} limit ?)`,
    );
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

  /** All tallies, or null if that would take more than the bounds allow. */
  gather(teamId: string, query: TallyQuery, bounds: ReadBounds): Tally[] | null {
    const found = this.withPlan(teamId, query, (team, plan, calendar) => {
      if (plan.kind === 'traces') return { tallies: null };
      const areFew = tileReads(query, plan).areFew;
      if (!areFew && this.#countIn(team, plan, bounds) > bounds.rollupRowsMax) {
        return { tallies: null };
      }
      const fold = this.#tails.foldOf(team, plan.set.speed, bounds.tailRowsMax);
      return { tallies: fold && this.sum(team, plan, query, calendar, [fold]) };
    });
    return found === null ? [] : found.tallies;
  }

  /** Adds up the rollups of a plan and the tail after them, in the transaction of the snapshot. */
  sum(
    team: TeamSnapshot,
    plan: RollupPlan,
    query: TallyQuery,
    calendar: Calendar,
    tail: Iterable<RollupFold>,
  ): Tally[] {
    const sheet = new TallySheet(query, calendar);
    for (const rollup of tailRollups(tail, plan, query, calendar)) {
      sheet.addRollup(rollup);
      refuseLarge(sheet);
    }
    for (const rollup of this.#rollups(team, plan, query)) {
      sheet.addRollup(rollup);
      refuseLarge(sheet);
    }
    return sheet.tallies();
  }

  /** The sums of the traces that are not rolled up yet, however many they are. */
  tail(team: TeamSnapshot, { set }: RollupPlan): Iterable<RollupFold> {
    return this.#tails.parts(team, set);
  }

  #countIn(team: TeamSnapshot, plan: RollupPlan, { rollupRowsMax }: ReadBounds): number {
    if (rollupRowsMax === Infinity) return 0;
    let count = 0;
    for (const tile of plan.tiles) {
      const [row] = this.#countRows.all(...tileKey(team, plan, tile), rollupRowsMax + 1);
      count += row?.[0] as number;
    }
    return count;
  }

  *#rollups(team: TeamSnapshot, plan: RollupPlan, query: TallyQuery): Generator<Rollup> {
    const { sqlOf, values } = tileReads(query, plan);
    const statement = this.#statements.get(sqlOf(rollupColumns));
    for (const tile of plan.tiles) {
      for (const row of statement.all(...tileKey(team, plan, tile), ...values)) {
        yield rollupOfValues(row as unknown as RollupValues);
      }
    }
  }
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
      const { grain, bucket } = rollup;
      const isDay = grain === grainNumbers.day;
      const startUs = isDay ? calendar.startOfDay(bucket) : bucket * usPerSecond;
      if (isInRange(range, startUs)) yield rollup;
    }
  }
}

const usPerSecond = 1_000_000;

export function refuseLarge(sheet: TallySheet): void {
  if (sheet.size > limits.tallyRowsMax) throw new Failure('question_too_wide');
}
