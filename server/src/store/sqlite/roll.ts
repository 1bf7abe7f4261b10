import type { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import { dimensionSets } from '../../core/dimensions.ts';
import { RollupFold } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import { inTransaction } from './connection.ts';
import { openCountedTraces } from './counted-traces.ts';
import { LookupBatch } from './lookup-batch.ts';
import { openLookupTable } from './lookup-table.ts';
import {
  firstMark,
  prepareMarkChecks,
  prepareMarkWrites,
  prepareMarks,
  teamTruthFrom,
  teamTruthSql,
} from './roll-marks.ts';
import type { RollMark, TeamTruth } from './roll-marks.ts';
import { openRollupTables } from './rollup-tables.ts';
import { prepareArrays } from './array-statement.ts';

/** What one roll did. */
export interface Rolled {
  /** Traces and changes that were added. */
  rows: number;
  /** The last trace of the generation that was rolled. */
  seq: number;
  /** The active mark after it; null if there is none yet. */
  mark: RollMark | null;
  /** Nothing is left to do for this team. */
  isComplete: boolean;
}

/**
 * Adds the traces and changes after a team's mark to the rollups, in one transaction of the rollup file. Several processes may do so at once:
 * the transaction starts with a write lock, and the mark says where to go on. The database is only read, in one snapshot that is newer than
 * the mark.
 */
export class TeamRolls {
  readonly #rollups: DatabaseSync;
  readonly #truth: DatabaseSync;
  readonly #readTruth;
  readonly #marksOf;
  readonly #checks;
  readonly #marks;
  readonly #traces;
  readonly #tables;
  readonly #lookups;
  readonly #removeLookups;
  readonly #readOld;
  readonly #removeOld;

  constructor(rollups: DatabaseSync, truth: DatabaseSync) {
    this.#rollups = rollups;
    this.#truth = truth;
    this.#readTruth = prepareArrays(truth, `${teamTruthSql} where t.no = ?`);
    this.#marksOf = prepareMarks(rollups);
    this.#checks = prepareMarkChecks(truth);
    this.#marks = prepareMarkWrites(rollups);
    this.#traces = openCountedTraces(truth);
    this.#tables = openRollupTables(rollups);
    this.#lookups = openLookupTable(rollups);
    this.#removeLookups = rollups.prepare('delete from trace_lookups where team_no = ?');
    // One step per generation. A search for other rows would read all rollups of the team.
    this.#readOld = prepareArrays(
      rollups,
      `with recursive stored (generation) as (
         select min(generation) from rollups where team_no = ?1
         union all
         select (select min(generation) from rollups where team_no = ?1 and generation > s.generation)
         from stored s where s.generation is not null)
       select generation from stored where generation is not null
         and generation not in (select generation from roll_marks where team_no = ?1) limit 1`,
    );
    const key = 'team_no, generation, set_no, grain, bucket, group_no';
    this.#removeOld = rollups.prepare(
      `delete from rollups where (${key}) in (
         select ${key} from rollups where team_no = ? and generation = ? limit ${limits.moveRowsMax})`,
    );
  }

  truthOf(teamNo: number): TeamTruth {
    const [row] = this.#readTruth.all(teamNo);
    if (!row) throw new Error(`there is no team ${teamNo}`);
    return teamTruthFrom(row);
  }

  activeMark(teamNo: number): RollMark | null {
    return this.#marksOf(teamNo).find(({ isActive }) => isActive) ?? null;
  }

  /** One transaction; none if there is nothing to do. */
  roll(teamNo: number, rowsMax: number): Rolled {
    return this.#complete(teamNo) ?? this.#rollInTransaction(teamNo, rowsMax);
  }

  /** Null if there is something to do. */
  #complete(teamNo: number): Rolled | null {
    const [mark, building] = this.#marksOf(teamNo);
    const truth = this.truthOf(teamNo);
    const isComplete =
      mark?.isActive === true &&
      building === undefined &&
      isOf(mark, truth) &&
      isAtEnd(mark, truth) &&
      this.#checks.isValid(mark, truth) &&
      this.#readOld.all(teamNo).length === 0;
    return isComplete ? { rows: 0, seq: mark.seq, mark, isComplete } : null;
  }

  #rollInTransaction(teamNo: number, rowsMax: number): Rolled {
    return inTransaction(this.#rollups, () => {
      let [active, building] = this.#validMarks(teamNo);
      return inTransaction(
        this.#truth,
        () => {
          const truth = this.truthOf(teamNo);
          if (building && (isOf(active, truth) || !isOf(building, truth))) {
            this.#marks.remove(teamNo, building);
            building = null;
          }
          if (!building && !isOf(active, truth)) building = this.#begin(truth);
          // The active generation answers meanwhile, so its tail must not grow.
          const isActiveFirst = active !== null && truth.lastSeq - active.seq > rowsMax;
          const before = isActiveFirst || !building ? active : building;
          if (!before) return { rows: 0, seq: truth.firstSeq - 1, mark: active, isComplete: true };
          const { mark, rows } = this.#add(truth, before, rowsMax);
          const isDone = isAtEnd(mark, truth);
          if (before === building && isDone) {
            if (active) this.#marks.remove(teamNo, active);
            mark.isActive = true;
          }
          if (rows > 0 || mark.isActive !== before.isActive) this.#marks.write(teamNo, mark);
          if (mark.isActive) [active, building] = [mark, before === building ? null : building];
          const [old] = this.#readOld.all(teamNo);
          if (old) this.#removeOld.run(teamNo, old[0] ?? null);
          const isComplete = isDone && building === null && old === undefined;
          return { rows, seq: mark.seq, mark: active, isComplete };
        },
        'begin',
      );
    });
  }

  /** The active mark, if there is one, and that of a generation under construction. Marks of another database are removed. */
  #validMarks(teamNo: number): [RollMark | null, RollMark | null] {
    const marks = this.#marksOf(teamNo);
    const truth = this.truthOf(teamNo);
    const valid = marks.filter((mark) => this.#checks.isValid(mark, truth));
    if (valid.length < marks.length) {
      for (const mark of marks) this.#marks.remove(teamNo, mark);
      this.#removeLookups.run(teamNo);
      return [null, null];
    }
    return [
      valid.find(({ isActive }) => isActive) ?? null,
      valid.find(({ isActive }) => !isActive) ?? null,
    ];
  }

  #begin(truth: TeamTruth): RollMark {
    const { teamNo, lastChangeNo } = truth;
    const token = this.#checks.changeToken(teamNo, lastChangeNo);
    const mark = firstMark(truth, token, this.#marks.nextGeneration(teamNo));
    this.#marks.write(teamNo, mark);
    return mark;
  }

  /**
   * Adds changes of traces that are rolled up already, then the traces after the mark with their present values. Those contain every change in
   * the snapshot, so traces are added only once all changes are.
   */
  #add(truth: TeamTruth, before: RollMark, rowsMax: number): { mark: RollMark; rows: number } {
    const { teamNo, lastSeq, lastChangeNo } = truth;
    const calendar = calendarOf(before.timeZone);
    const added = new RollupFold(dimensionSets, calendar);
    const removed = new RollupFold(dimensionSets, calendar);
    // Both entries of a change, so that the rollups never lack its trace.
    const changeNo = Math.min(lastChangeNo, before.changeNo + 2 * Math.ceil(rowsMax / 2));
    let rows = 0;
    const changes = { afterNo: before.changeNo, toNo: changeNo, upToSeq: before.seq };
    this.#traces.eachChange(teamNo, changes, (trace, weight) => {
      (weight > 0 ? added : removed).add(trace);
    });
    rows += changeNo - before.changeNo;
    let { seq } = before;
    if (changeNo === lastChangeNo) {
      const lookups = new LookupBatch();
      const range = { afterSeq: before.seq, toSeq: lastSeq };
      rows += this.#traces.each(teamNo, range, rowsMax, (trace, traceSeq) => {
        added.add(trace);
        lookups.add(trace, traceSeq);
        seq = traceSeq;
      });
      this.#lookups.add(teamNo, lookups.take());
    }
    this.#tables.add(teamNo, before.generation, added.rollups());
    this.#tables.subtract(teamNo, before.generation, removed.rollups());
    const mark = { ...before, seq, changeNo };
    if (seq > before.seq) mark.traceId = this.#checks.traceId(teamNo, seq);
    if (changeNo > before.changeNo) {
      mark.changeToken = this.#checks.changeToken(teamNo, changeNo);
    }
    return { mark, rows };
  }
}

/** Whether a generation was built for the present request. */
function isOf(mark: RollMark | null, { timeZone, rebuildNo }: TeamTruth): boolean {
  return mark?.timeZone === timeZone && mark.rebuildNo === rebuildNo;
}

function isAtEnd({ seq, changeNo }: RollMark, { lastSeq, lastChangeNo }: TeamTruth): boolean {
  return seq === lastSeq && changeNo === lastChangeNo;
}
