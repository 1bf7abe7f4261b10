import type { DatabaseSync } from 'node:sqlite';
import type { TeamMarks } from '../team-marks.ts';
import { prepareArrays } from './array-statement.ts';
import { inTransaction } from './connection.ts';
import { prepareMarkChecks, prepareMarks, teamTruthFrom, teamTruthSql } from './roll-marks.ts';
import { isDamaged } from './sqlite-failures.ts';

/** What a read needs to know about a team first, in the transaction in which it reads the rest. */
export interface TeamSnapshot {
  teamNo: number;
  /** `firstSeq` - 1 if there are no traces. */
  lastSeq: number;
  firstSeq: number;
  marks: TeamMarks;
  /** The last change that the rollups contain. */
  changeNo: number;
  lastChangeNo: number;
}

/** Where there are no rollups. */
export const noGeneration = 0;

/** Reads what a question needs to know about a team. */
export class TeamSnapshots {
  readonly #db: DatabaseSync;
  readonly #readNo;
  readonly #readTruth;
  readonly #marksOf;
  readonly #isValid;
  /** Numbers never change. */
  readonly #numbers = new Map<string, number>();
  /** Then answers come from the traces alone. */
  #areRollupsDamaged = false;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#readNo = db.prepare('select no from teams where id = ?');
    this.#readTruth = prepareArrays(db, `${teamTruthSql} where t.no = ?`);
    this.#marksOf = prepareMarks(db);
    this.#isValid = prepareMarkChecks(db).isValid;
  }

  /** Runs a synchronous read in a transaction with the snapshot of a team. Null if there is no such team. */
  read<T>(teamId: string, work: (team: TeamSnapshot) => T): T | null {
    const no = this.#numberOf(teamId);
    if (no === null) return null;
    const attempt = (): T => inSnapshot(this.#db, () => work(this.#snapshotOf(no)));
    if (this.#areRollupsDamaged) return attempt();
    try {
      return attempt();
    } catch (error) {
      if (!isDamaged(error)) throw error;
      this.#areRollupsDamaged = true;
    }
    // The roller reports it. If this fails too, the database itself is damaged.
    try {
      return attempt();
    } catch (error) {
      this.#areRollupsDamaged = false;
      throw error;
    }
  }

  /** Begins a transaction that stays open. */
  begin(teamId: string): TeamSnapshot {
    const no = this.#numberOf(teamId);
    if (no === null) throw new Error(`there is no team ${teamId}`);
    this.#db.exec('begin');
    return this.#snapshotOf(no);
  }

  #numberOf(teamId: string): number | null {
    let no = this.#numbers.get(teamId);
    if (no === undefined) {
      no = this.#readNo.get(teamId)?.['no'] as number | undefined;
      if (no === undefined) return null;
      this.#numbers.set(teamId, no);
    }
    return no;
  }

  /**
   * The mark is read first, by a statement that reads only the rollup file: SQLite takes the snapshot of each file when it is first read, so
   * the snapshot of the database is never older than the mark, and no trace is missed or counted twice.
   */
  #snapshotOf(no: number): TeamSnapshot {
    const marks = this.#areRollupsDamaged ? [] : this.#marksOf(no);
    const mark = marks.find(({ isActive }) => isActive);
    const truth = teamTruthFrom(this.#readTruth.all(no)[0] ?? []);
    const { teamNo, firstSeq, lastSeq, lastChangeNo } = truth;
    const isUsed = mark !== undefined && this.#isValid(mark, truth);
    const seq = isUsed ? mark.seq : firstSeq - 1;
    return {
      teamNo,
      firstSeq,
      lastSeq,
      marks: {
        generation: isUsed ? mark.generation : noGeneration,
        timeZone: isUsed ? mark.timeZone : truth.timeZone,
        seq,
      },
      changeNo: isUsed ? mark.changeNo : lastChangeNo,
      lastChangeNo,
    };
  }
}

/**
 * Runs reads in one transaction, so that they see the same snapshot. They must be synchronous. If one fails, what it has put into
 * temporary tables is removed too, so that the next read does not find it.
 */
function inSnapshot<T>(db: DatabaseSync, read: () => T): T {
  return inTransaction(db, read, 'begin');
}
