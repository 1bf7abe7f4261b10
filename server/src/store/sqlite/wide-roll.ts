import { limits } from '../../limits.ts';
import { RollSize } from '../roll-size.ts';
import type { TeamMarks } from '../team-marks.ts';
import { RollBatch } from './rollup-tables.ts';
import type { RollupTables } from './rollup-tables.ts';

/** What one step did. */
export interface WideStep {
  /** Traces that were read. */
  read: number;
  /** Whether the mark has moved, or there is nothing to do. */
  isDone: boolean;
}

/**
 * Rolls up the wide sets of one team after the other, in steps that are short transactions. A wide set has about as many groups as a small
 * batch has traces, so the traces of several steps are gathered in memory before their sums are stored. If something else moves the mark
 * in between, what was gathered is dropped.
 */
export class WideRoll {
  readonly #tables: RollupTables;
  readonly #storeSize = new RollSize(limits.wideStoreMsTarget);
  #batch: RollBatch | null = null;
  #isComplete = false;
  /** Rollups that the last step has stored. */
  #stored = 0;

  constructor(tables: RollupTables) {
    this.#tables = tables;
  }

  /** The team whose traces are being gathered. */
  get teamNo(): number | null {
    return this.#batch?.teamNo ?? null;
  }

  /** Must run in a transaction. If that fails, `drop` must be called. */
  step(teamNo: number, rowsMax: number): WideStep {
    const marks = this.#tables.marks(teamNo);
    if (!marks) return { read: 0, isDone: true };
    const batch = this.#continued(teamNo, marks);
    if (this.#isComplete) return this.#store(batch);
    const read = this.#tables.gather(batch, rowsMax);
    this.#isComplete =
      read < rowsMax || batch.rows >= limits.rollRowsMax || batch.fold.size >= this.#storeSize.rows;
    // A short tail is rolled up in one step.
    const isShort = this.#isComplete && read < rowsMax / 2 && batch.fold.size < limits.rollRowsMin;
    return isShort ? { ...this.#store(batch), read } : { read, isDone: false };
  }

  /** How long the last step took. */
  noteTime(tookMs: number): void {
    if (this.#stored > 0) this.#storeSize.note(this.#stored, tookMs);
    this.#stored = 0;
  }

  drop(): void {
    this.#batch = null;
    this.#isComplete = false;
    this.#stored = 0;
  }

  #continued(teamNo: number, marks: TeamMarks): RollBatch {
    const batch = this.#batch;
    const isSame =
      batch?.teamNo === teamNo &&
      batch.marks.generation === marks.generation &&
      batch.marks.rolledSeq.wide === marks.rolledSeq.wide;
    if (isSame) return batch;
    this.drop();
    return (this.#batch = new RollBatch(teamNo, marks, 'wide'));
  }

  #store(batch: RollBatch): WideStep {
    this.drop();
    if (batch.rows > 0) this.#tables.store(batch);
    this.#stored = batch.fold.size;
    return { read: 0, isDone: true };
  }
}
