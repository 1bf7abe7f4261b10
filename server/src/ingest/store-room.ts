import { FairShare } from '../core/fair-share.ts';

/** How much a write is for the store: about the time that it takes to insert one small row. */
export function workOf(rows: number, bytes: number): number {
  return rows + Math.floor(bytes / bytesPerRowOfWork);
}

const bytesPerRowOfWork = 4096;

/** Work that may be at the store at once, small and large writes apart, shared fairly between teams. */
const storeWorkMax = 1_024;
/** A write with more work is a large one. */
export const smallWorkMax = 64;

/**
 * Bounds the work that is at the store at once: whatever arrives next has to wait for all of it. Small writes pass large ones: they have
 * room of their own, and every team may always have a few of them at the store.
 */
export class StoreRoom {
  readonly #small = new FairShare(storeWorkMax);
  readonly #large = new FairShare(storeWorkMax);

  has(teamId: string, work: number): boolean {
    if (work <= smallWorkMax) {
      const held = this.#small.heldBy(teamId);
      return held + work <= smallWorkMax || held + work <= storeWorkMax - this.#small.used;
    }
    // A write may be larger than the whole room.
    const isFirst = this.#large.heldBy(teamId) === 0;
    if (isFirst) return this.#large.used < storeWorkMax;
    return this.#large.hasRoom({ teamId, keyId: null }, work);
  }

  take(teamId: string, work: number): void {
    this.#of(work).take({ teamId, keyId: null }, work);
  }

  give(teamId: string, work: number): void {
    this.#of(work).give({ teamId, keyId: null }, work);
  }

  #of(work: number): FairShare {
    return work <= smallWorkMax ? this.#small : this.#large;
  }
}
