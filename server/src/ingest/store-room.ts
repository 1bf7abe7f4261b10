import { FairShare } from '../core/fair-share.ts';
import type { TraceWrite } from '../store/trace-writer.ts';

/** How much a write is for the store, in the time that it takes to insert a small row. Each report of a call counts as one. */
export function workOf({ drafts, calls }: TraceWrite, bytes: number): number {
  const reports = calls?.reduce((sum, ids) => sum + ids.length, 0) ?? 0;
  return Math.max(drafts.length, reports) + Math.floor(bytes / bytesPerRowOfWork);
}

const bytesPerRowOfWork = 4096;

/** Work that may be at the store at once, small and large writes apart, shared fairly between teams. */
const storeWorkMax = 1_024;
/** The pause after a large write, as a multiple of the time that it took. */
const pauseFactor = 1.5;
const pauseMsMax = 100;
/** A team that has sent small writes within this time is likely to send more. */
const sharedMs = 1_000;
/** A write with more work is a large one. */
export const smallWorkMax = 64;

export function isSmallWork(work: number): boolean {
  return work <= smallWorkMax;
}

/**
 * Bounds the work that is at the store at once: whatever arrives next has to wait for all of it. Small writes pass large ones: they have
 * room of their own, and every team may always have a few of them at the store. After a large write, the next one waits longer than that
 * one took if other teams have sent small ones, so that most small writes meet no large one.
 */
export class StoreRoom {
  readonly #small = new FairShare(storeWorkMax);
  readonly #large = new FairShare(storeWorkMax);
  readonly #onPause: (pauseMs: number) => void;
  #isPaused = false;
  /** The team of the last small write, and when any other team sent one. */
  #lastSmall = { teamId: '', atMs: -Infinity, othersAtMs: -Infinity };

  /** `onPause` is told how long large writes pause, and calls `resume` after that. */
  constructor(onPause: (pauseMs: number) => void) {
    this.#onPause = onPause;
  }

  resume(): void {
    this.#isPaused = false;
  }

  has(teamId: string, work: number): boolean {
    if (isSmallWork(work)) {
      const held = this.#small.heldBy(teamId);
      return held + work <= smallWorkMax || held + work <= storeWorkMax - this.#small.used;
    }
    if (this.#isPaused) return false;
    // A write may be larger than the whole room.
    const isFirst = this.#large.heldBy(teamId) === 0;
    if (isFirst) return this.#large.used < storeWorkMax;
    return this.#large.hasRoom({ teamId, keyId: null }, work);
  }

  take(teamId: string, work: number): void {
    this.#of(work).take({ teamId, keyId: null }, work);
    if (isSmallWork(work)) this.#noteSmall(teamId);
  }

  give(teamId: string, work: number, tookMs: number): void {
    this.#of(work).give({ teamId, keyId: null }, work);
    if (isSmallWork(work) || !this.#isShared(teamId)) return;
    this.#isPaused = true;
    this.#onPause(Math.min(pauseFactor * tookMs, pauseMsMax));
  }

  #noteSmall(teamId: string): void {
    const last = this.#lastSmall;
    const atMs = performance.now();
    if (last.teamId === teamId) last.atMs = atMs;
    else this.#lastSmall = { teamId, atMs, othersAtMs: last.atMs };
  }

  /** Whether other teams have sent small writes lately. */
  #isShared(teamId: string): boolean {
    const { teamId: lastTeamId, atMs, othersAtMs } = this.#lastSmall;
    return performance.now() - (lastTeamId === teamId ? othersAtMs : atMs) < sharedMs;
  }

  #of(work: number): FairShare {
    return isSmallWork(work) ? this.#small : this.#large;
  }
}
