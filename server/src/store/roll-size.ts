import { limits } from '../limits.ts';

/** How many traces to roll up in one transaction, so that it takes about as long as it should. */
export class RollSize {
  readonly #targetMs: number;
  #rows: number;

  constructor(targetMs: number, rows = firstRows) {
    this.#targetMs = targetMs;
    this.#rows = rows;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Adjusts the size to how long the last roll took. Small ones say little: most of their time is spent on the transaction itself. */
  note(rows: number, tookMs: number): void {
    if (rows < limits.rollRowsMin) return;
    const fitting = Math.floor((rows * this.#targetMs) / Math.max(tookMs, shortestMs));
    // At most doubled, since a single measurement may be lucky.
    this.#set(Math.min(fitting, 2 * this.#rows));
  }

  /** A roll failed, perhaps because it was too large. */
  halve(): void {
    this.#set(this.#rows >> 1);
  }

  #set(rows: number): void {
    this.#rows = Math.min(Math.max(rows, limits.rollRowsMin), limits.rollRowsMax);
  }
}

const firstRows = 1_024;
const shortestMs = 0.1;
