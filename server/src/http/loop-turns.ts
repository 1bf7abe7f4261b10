import { limits } from '../limits.ts';

/**
 * Spreads work that may be heavy over the turns of the event loop. When hundreds of requests for large traces arrive at once, they
 * would otherwise all run in one turn, and nothing else would be served for seconds. While a turn is young, work starts at once; past
 * that, one piece starts per turn, and teams take turns.
 */
export class LoopTurns {
  readonly #waiting = new Map<string, (() => void)[]>();
  /** When the first work of this turn began; null if there was none. */
  #turnStartMs: number | null = null;

  enter(teamId: string, start: () => void): void {
    const nowMs = performance.now();
    this.#turnStartMs ??= this.#openTurn(nowMs);
    if (this.#waiting.size === 0 && nowMs - this.#turnStartMs < limits.heavyTurnMsMax) {
      start();
      return;
    }
    const line = this.#waiting.get(teamId);
    if (line) line.push(start);
    else this.#waiting.set(teamId, [start]);
  }

  #openTurn(nowMs: number): number {
    setImmediate(() => this.#endTurn());
    return nowMs;
  }

  #endTurn(): void {
    this.#turnStartMs = null;
    const [first] = this.#waiting;
    if (!first) return;
    const [teamId, line] = first;
    // To the back of the line of teams, or out of it.
    this.#waiting.delete(teamId);
    const start = line.shift();
    if (line.length > 0) this.#waiting.set(teamId, line);
    this.#turnStartMs = this.#openTurn(performance.now());
    start?.();
  }
}
