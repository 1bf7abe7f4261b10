import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { RollSize } from '../roll-size.ts';
import type { TeamMarks } from '../team-marks.ts';
import { RollBatch } from './rollup-tables.ts';
import type { RollupTables } from './rollup-tables.ts';
import type { AddedTraces } from './writer.ts';

/** What one step did. */
export interface RollStep {
  /** Traces that were read from the file. */
  read: number;
  /** Traces that were added to the rollups. */
  rolled: number;
  /** Whether the mark has moved, or there is nothing to do. */
  isDone: boolean;
}

/**
 * Traces that are added up in memory and not stored in the rollups yet, as one batch per team. Most come from a commit, while they are
 * still in memory, so that they need not be read again; others are read from the file, in steps that are short transactions. A wide set
 * has about as many groups as a small batch has traces, so its batches are large. If something else moves the mark, the batch is dropped.
 */
export class PendingRolls {
  readonly #tables: RollupTables;
  readonly #speed: RollSpeed;
  readonly #storeSize: RollSize;
  readonly #batches = new Map<number, RollBatch>();
  /** What all batches hold. */
  #size = 0;
  #begunTeamNo: number | null = null;
  /** Rollups that the last step has stored. */
  #stored = 0;

  constructor(tables: RollupTables, speed: RollSpeed) {
    this.#tables = tables;
    this.#speed = speed;
    this.#storeSize = new RollSize(
      speed === 'hot' ? limits.rollMsTarget : limits.wideStoreMsTarget,
    );
  }

  /** The team whose traces are being read from the file. */
  get begunTeamNo(): number | null {
    return this.#begunTeamNo;
  }

  /**
   * Adds traces of a commit if they follow those of the team's batch, or those behind the mark. All others are read later. `rolledSeq` is
   * where the mark is supposed to be. Returns whether as many have gathered as are stored at once.
   */
  add(teamNo: number, added: readonly AddedTraces[], rolledSeq: number): boolean {
    const batch = this.#batches.get(teamNo) ?? this.#begin(teamNo, added, rolledSeq);
    if (!batch) return false;
    this.#change(batch, () => {
      for (const { firstSeq, drafts, stamps } of added) {
        // A batch that is full is stored soon, and what was committed until then should not be left behind.
        if (firstSeq !== batch.toSeq + 1 || this.#isFull(batch, 2)) return;
        if (this.#isOutOfRoom) return;
        for (let i = 0; i < drafts.length; i++) {
          const [draft, stamp] = [drafts[i], stamps[i]];
          if (draft && stamp) batch.add(draft, stamp.createdAtUs, firstSeq + i);
        }
      }
    });
    return this.#isFull(batch);
  }

  /**
   * Stores the team's batch. If it ends before `lastSeq`, reads traces first, and stores them in a later step if they are many. Must run
   * in a transaction; if that fails, `drop` must be called.
   */
  step(teamNo: number, rowsMax: number, lastSeq: number): RollStep {
    const marks = this.#tables.marks(teamNo);
    if (!marks) return { read: 0, rolled: 0, isDone: true };
    const batch = this.#continued(teamNo, marks);
    const isReady = batch.isComplete || batch.toSeq >= lastSeq || this.#isFull(batch);
    if (isReady && this.#hasManyLookups(batch)) {
      // In a transaction of its own: together with the sums it would hold up writes for longer.
      this.#change(batch, () => this.#tables.storeLookups(batch));
      return { read: 0, rolled: 0, isDone: false };
    }
    if (isReady) return this.#store(batch, 0);
    let read = 0;
    this.#change(batch, () => (read = this.#tables.gather(batch, rowsMax)));
    batch.isComplete = read < rowsMax;
    const isShort = read < rowsMax / 2 && batch.fold.size < limits.rollRowsMin;
    if (isShort) return this.#store(batch, read);
    this.#begunTeamNo = teamNo;
    return { read, rolled: 0, isDone: false };
  }

  /**
   * Stores the lookups of the team's batch before its sums, if they are many: those of a few values that repeat are cheaper together.
   * Must run in a transaction; if that fails, `drop` must be called.
   */
  storeLookups(teamNo: number): void {
    const batch = this.#batches.get(teamNo);
    if (!batch?.lookups || batch.lookups.size < limits.pendingLookupsMax) return;
    this.#change(batch, () => this.#tables.storeLookups(batch));
  }

  /** How long the last step took. */
  noteTime(tookMs: number): void {
    if (this.#stored > 0) this.#storeSize.note(this.#stored, tookMs);
    this.#stored = 0;
  }

  drop(teamNo: number): void {
    this.#size -= this.#batches.get(teamNo)?.size ?? 0;
    this.#batches.delete(teamNo);
    if (this.#begunTeamNo === teamNo) this.#begunTeamNo = null;
    this.#stored = 0;
  }

  /** A new batch for traces that follow the mark. */
  #begin(teamNo: number, added: readonly AddedTraces[], rolledSeq: number): RollBatch | null {
    if (added[0]?.firstSeq !== rolledSeq + 1 || this.#isOutOfRoom) return null;
    const marks = this.#tables.marks(teamNo);
    return marks?.rolledSeq[this.#speed] === rolledSeq ? this.#open(teamNo, marks) : null;
  }

  #continued(teamNo: number, marks: TeamMarks): RollBatch {
    const batch = this.#batches.get(teamNo);
    const isSame =
      batch?.marks.generation === marks.generation &&
      batch.marks.rolledSeq[this.#speed] === marks.rolledSeq[this.#speed];
    if (isSame) return batch;
    this.drop(teamNo);
    return this.#open(teamNo, marks);
  }

  #open(teamNo: number, marks: TeamMarks): RollBatch {
    const batch = new RollBatch(teamNo, marks, this.#speed);
    this.#batches.set(teamNo, batch);
    return batch;
  }

  #change(batch: RollBatch, act: () => void): void {
    const before = batch.size;
    let isDone = false;
    try {
      act();
      isDone = true;
    } finally {
      this.#size += batch.size - before;
      // A trace may have been added to some of the sums.
      if (!isDone) this.drop(batch.teamNo);
    }
  }

  get #isOutOfRoom(): boolean {
    return this.#size >= limits.pendingSumsMax;
  }

  #hasManyLookups({ lookups }: RollBatch): boolean {
    return lookups !== null && lookups.size >= limits.lookupsWithSumsMax;
  }

  #isFull({ rows, fold }: RollBatch, times = 1): boolean {
    return rows >= times * limits.rollRowsMax || fold.size >= times * this.#storeSize.rows;
  }

  #store(batch: RollBatch, read: number): RollStep {
    this.drop(batch.teamNo);
    if (batch.rows > 0) this.#tables.store(batch);
    this.#stored = batch.fold.size;
    return { read, rolled: batch.rows, isDone: true };
  }
}
