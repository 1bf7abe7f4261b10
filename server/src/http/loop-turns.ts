import { limits } from '../limits.ts';

/**
 * Spreads expensive work over several turns of the event loop. If hundreds of requests for large traces arrive at once, they would
 * otherwise all run in one turn and block everything else for seconds. In the first milliseconds of a turn, work starts immediately;
 * after that it waits for the next turns, and teams take turns. A long turn is followed by a pause of the same length, in which the
 * loop handles everything else and accepts new connections, only one per turn.
 */
export class LoopTurns {
  readonly #waiting = new Map<string, (() => void)[]>();
  /** When the first work of this turn started; null if there was none. */
  #turnStartMs: number | null = null;

  enter(teamId: string, start: () => void): void {
    if (this.#waiting.size === 0 && this.#isYoung()) {
      start();
      return;
    }
    this.#waiting.getOrInsertComputed(teamId, () => []).push(start);
  }

  #isYoung(): boolean {
    const nowMs = performance.now();
    if (this.#turnStartMs === null) {
      this.#turnStartMs = nowMs;
      setImmediate(() => this.#endTurn(nowMs));
    }
    return nowMs - this.#turnStartMs < limits.heavyTurnMsMax;
  }

  #endTurn(startMs: number): void {
    this.#turnStartMs = null;
    if (this.#waiting.size === 0) return;
    const tookMs = performance.now() - startMs;
    if (tookMs < 2 * limits.heavyTurnMsMax) this.#startWaiting();
    else setTimeout(() => this.#startWaiting(), tookMs);
  }

  #startWaiting(): void {
    while (this.#isYoung()) {
      const [first] = this.#waiting;
      if (!first) return;
      const [teamId, line] = first;
      // Move the team to the end of the queue, or remove it.
      this.#waiting.delete(teamId);
      const start = line.shift();
      if (line.length > 0) this.#waiting.set(teamId, line);
      start?.();
    }
  }
}
