import { limits } from '../../limits.ts';

/** How many traces to roll up in one transaction, so that it takes about `rollMsTarget`. */
export class RollSize {
  #rows = firstRows;

  get rows(): number {
    return this.#rows;
  }

  /** Adjusts the size to how long the last roll took. Small ones say little: most of their time is spent on the transaction itself. */
  note(rows: number, tookMs: number): void {
    if (rows < limits.rollRowsMin) return;
    const fitting = Math.floor((rows * limits.rollMsTarget) / Math.max(tookMs, shortestMs));
    // At most doubled, since a single measurement may be lucky.
    const next = Math.min(fitting, 2 * this.#rows);
    this.#rows = Math.min(Math.max(next, limits.rollRowsMin), limits.rollRowsMax);
  }
}

const firstRows = 1_024;
const shortestMs = 0.1;
