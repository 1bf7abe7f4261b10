import { limits } from '../limits.ts';

/**
 * Spreads work that may be heavy over the turns of the event loop. When hundreds of requests for large traces arrive at once, they
 * would otherwise all run in one turn, and nothing else would be served for seconds. While a turn is young, work starts at once; what
 * comes later waits for the next turns, and teams take turns. A turn that took long is followed by a pause of the same length, in which
 * the loop serves everything else and takes new connections, of which it accepts only one per turn.
 */
export class LoopTurns {
  readonly #waiting = new Map<string, (() => void)[]>();
  /** When the first work of this turn began; null if there was none. */
  #turnStartMs: number | null = null;

  enter(teamId: string, start: () => void): void {
    if (this.#waiting.size === 0 && this.#isYoung()) {
      start();
      return;
    }
    const line = this.#waiting.get(teamId);
    if (line) line.push(start);
    else this.#waiting.set(teamId, [start]);
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
      // To the back of the line of teams, or out of it.
      this.#waiting.delete(teamId);
      const start = line.shift();
      if (line.length > 0) this.#waiting.set(teamId, line);
      start?.();
    }
  }
}
