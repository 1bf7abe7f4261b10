import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { RollSize } from '../roll-size.ts';
import { anotherRebuild } from '../roller.ts';
import type { Roller } from '../roller.ts';
import type { TeamMarks } from '../team-marks.ts';
import { inUnsyncedTransaction, retryWhileBusy } from './connection.ts';
import { findWrongLookups, lookupBlocks, repairLookups } from './lookup-repair.ts';
import { openRollupTables } from './rollup-tables.ts';
import type { RollupTables } from './rollup-tables.ts';

/** The small sets again at the end: most reads need them, so their tail should be short when the generation becomes active. */
const speeds: readonly RollSpeed[] = ['hot', 'wide', 'hot'];

/** Rolls on request, on the main thread. A server rolls in the writer thread. Statements are prepared when they are needed. */
export function openRoller(db: DatabaseSync): Roller {
  let opened: RollupTables | null = null;
  const tables = (): RollupTables => (opened ??= openRollupTables(db));
  const inTurn = <T>(work: () => T): Promise<T> => retryWhileBusy(db, work, inUnsyncedTransaction);

  function teamNoOf(teamId: string): number {
    const row = db.prepare('select no from teams where id = ?').get(teamId);
    if (!row) throw new Error(`there is no team ${teamId}`);
    return row['no'] as number;
  }

  /** Rolls a generation until only a few traces are left: new ones may arrive all the time. */
  async function rollAll(
    teamNo: number,
    generation: number,
    onProgress: (rolled: number) => void,
  ): Promise<void> {
    for (const speed of speeds) {
      const size = new RollSize(limits.rollMsTarget);
      for (let isMore = true; isMore;) {
        const rowsMax = size.rows;
        const startMs = performance.now();
        const rolled = await inTurn(() => {
          const marks = marksOf(tables(), teamNo, generation);
          if (marks === 'active') return null;
          const rows = tables().roll(teamNo, marks, speed, rowsMax);
          return { rows, seq: marks.rolledSeq[speed] + rows };
        });
        if (!rolled) return;
        const tookMs = performance.now() - startMs;
        size.note(rolled.rows, tookMs);
        onProgress(rolled.seq);
        isMore = rolled.rows === rowsMax;
        if (isMore) await delay(tookMs);
      }
    }
  }

  async function deleteOldRows(teamNo: number): Promise<void> {
    for (;;) {
      const startMs = performance.now();
      const rows = await inTurn(() => deleteSome(db, teamNo));
      if (rows === 0) break;
      await delay(performance.now() - startMs);
    }
    await inTurn(() => deleteOldDays(db, teamNo));
  }

  return {
    async roll(teamId, speed, rowsMax) {
      const teamNo = teamNoOf(teamId);
      return inTurn(() => {
        const marks = tables().marks(teamNo);
        return marks ? tables().roll(teamNo, marks, speed, rowsMax) : 0;
      });
    },
    async marks(teamId) {
      return activeMarks(tables().marks(teamNoOf(teamId)), teamId);
    },
    async rebuild(teamId, timeZone, onProgress = () => {}) {
      const teamNo = teamNoOf(teamId);
      const generation = await inTurn(() => startGeneration(db, tables(), teamNo, timeZone));
      const total = Number(
        db.prepare('select last_seq from team_counters where team_no = ?').get(teamNo)?.[
          'last_seq'
        ] ?? 0,
      );
      const onRolled = (rolled: number): void => onProgress(Math.min(rolled, total), total);
      await rollAll(teamNo, generation, onRolled);
      await inTurn(() => switchGeneration(db, tables(), teamNo, generation));
      await deleteOldRows(teamNo);
      for (const block of lookupBlocks(db, teamNo)) {
        const wrong = findWrongLookups(db, teamNo, block);
        if (wrong) await inTurn(() => repairLookups(db, teamNo, wrong));
        await nextTurn();
      }
    },
    removeOldRollups: (teamId) => deleteOldRows(teamNoOf(teamId)),
  };
}

export function activeMarks(marks: TeamMarks | null, teamId: string): TeamMarks {
  if (!marks) throw new Error(`team ${teamId} has no marks`);
  return marks;
}

/**
 * The marks of a generation that is being built. `active` if another rebuild for the same time zone has finished it. Numbers are not
 * used again, so the generation cannot have got another time zone.
 */
function marksOf(tables: RollupTables, teamNo: number, generation: number): TeamMarks | 'active' {
  const building = tables.marks(teamNo, 'building');
  if (building?.generation === generation) return building;
  if (tables.marks(teamNo)?.generation === generation) return 'active';
  throw anotherRebuild();
}

/** The generation to fill: that of an interrupted rebuild for the same time zone, or a new one. */
function startGeneration(
  db: DatabaseSync,
  tables: RollupTables,
  teamNo: number,
  timeZone: string,
): number {
  const building = tables.marks(teamNo, 'building');
  if (building?.timeZone === timeZone) return building.generation;
  // Rows of an abandoned generation may still exist, so its number is not used again.
  const newest = db.prepare(`
    select max(generation) as generation from (
      select max(generation) as generation from team_marks where team_no = ?1
      union all select max(generation) from rollup_rows where team_no = ?1)`);
  const generation = Number(newest.get(teamNo)?.['generation']) + 1;
  db.prepare('delete from team_marks where team_no = ? and is_active = 0').run(teamNo);
  db.prepare(`
    insert into team_marks (team_no, generation, time_zone, is_active, hot_seq, wide_seq)
    select ?1, ?2, ?3, 0, s.before, s.before from (
      select coalesce((select first_seq from team_counters where team_no = ?1), 1) - 1 as before) s`).run(
    teamNo,
    generation,
    timeZone,
  );
  return generation;
}

function switchGeneration(
  db: DatabaseSync,
  tables: RollupTables,
  teamNo: number,
  generation: number,
): void {
  if (marksOf(tables, teamNo, generation) === 'active') return;
  db.prepare('delete from team_marks where team_no = ? and is_active = 1').run(teamNo);
  db.prepare('update team_marks set is_active = 1 where team_no = ? and generation = ?').run(
    teamNo,
    generation,
  );
}

function deleteOldDays(db: DatabaseSync, teamNo: number): void {
  db.prepare(
    `delete from rollup_days where team_no = ?1
       and generation not in (select generation from team_marks where team_no = ?1)`,
  ).run(teamNo);
}

/** Deletes some rows of generations that are neither active nor being built. Returns how many. */
function deleteSome(db: DatabaseSync, teamNo: number): number {
  const key = 'team_no, generation, set_no, grain, bucket, group_hash';
  const { changes } = db
    .prepare(
      `delete from rollup_rows where (${key}) in (
         select ${key} from rollup_rows where team_no = ?1 and generation = (
           select generation from rollup_rows where team_no = ?1
             and generation not in (select generation from team_marks where team_no = ?1) limit 1)
         limit ${limits.moveRowsMax})`,
    )
    .run(teamNo);
  return Number(changes);
}
