import { FairShare } from '../core/fair-share.ts';
import { limits } from '../limits.ts';

/** How much a write is for the store: about the time that it takes to insert one small row. */
export function workOf(rows: number, bytes: number): number {
  return rows + Math.floor(bytes / bytesPerRowOfWork);
}

const bytesPerRowOfWork = 4096;

/**
 * Bounds the work that is at the store at once: whatever arrives next has to wait for all of it. Small writes pass large ones: they have
 * room of their own, and every team may always have a few of them at the store.
 */
export class StoreRoom {
  readonly #small = new FairShare(limits.storeWorkMax);
  readonly #large = new FairShare(limits.storeWorkMax);

  has(teamId: string, work: number): boolean {
    if (work <= limits.smallWorkMax) {
      const held = this.#small.heldBy(teamId);
      return (
        held + work <= limits.smallWorkMax || held + work <= limits.storeWorkMax - this.#small.used
      );
    }
    // A write may be larger than the whole room.
    const isFirst = this.#large.heldBy(teamId) === 0;
    if (isFirst) return this.#large.used < limits.storeWorkMax;
    return this.#large.hasRoom({ teamId, keyId: null }, work);
  }

  take(teamId: string, work: number): void {
    this.#of(work).take({ teamId, keyId: null }, work);
  }

  give(teamId: string, work: number): void {
    this.#of(work).give({ teamId, keyId: null }, work);
  }

  #of(work: number): FairShare {
    return work <= limits.smallWorkMax ? this.#small : this.#large;
  }
}
