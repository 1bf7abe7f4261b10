import { FairShare } from '../core/fair-share.ts';
import { limits } from '../limits.ts';

export interface WaitingBounds {
  queueRowsMax: number;
  queueBytesMax: number;
}

/** Bounds the rows and bytes that wait for the store. Teams share it, so that one team's backlog does not make another's writes fail. */
export class WaitingBudget {
  readonly #rows: FairShare;
  readonly #bytes: FairShare;

  constructor({ queueRowsMax, queueBytesMax }: WaitingBounds = limits) {
    this.#rows = new FairShare(queueRowsMax);
    this.#bytes = new FairShare(queueBytesMax);
  }

  get rows(): number {
    return this.#rows.used;
  }

  get bytes(): number {
    return this.#bytes.used;
  }

  get isEmpty(): boolean {
    return this.#rows.used === 0;
  }

  tryTake(teamId: string, rows: number, bytes: number): boolean {
    const holder = { teamId, keyId: null };
    if (!this.#rows.tryTake(holder, rows)) return false;
    if (this.#bytes.tryTake(holder, bytes)) return true;
    this.#rows.give(holder, rows);
    return false;
  }

  give(teamId: string, rows: number, bytes: number): void {
    const holder = { teamId, keyId: null };
    this.#rows.give(holder, rows);
    this.#bytes.give(holder, bytes);
  }
}
