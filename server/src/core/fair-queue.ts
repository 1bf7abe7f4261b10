import { CallerLeft } from '../errors.ts';

export interface FairQueueBounds {
  /** How many may run at once, for all teams together. */
  runningMax: number;
  /** How many may run at once for one team. */
  teamRunningMax: number;
  /** How many may wait for one team. */
  teamWaitingMax: number;
}

/** Bounds how much work runs at once. Teams take turns, so that a long queue of one team never delays another. */
export class FairQueue {
  readonly #bounds: FairQueueBounds;
  readonly #onFull: () => Error;
  /** Teams with running or waiting work, in the order of their turns. */
  readonly #teams = new Map<string, TeamLine>();
  #running = 0;

  constructor(bounds: FairQueueBounds, onFull: () => Error) {
    this.#bounds = bounds;
    this.#onFull = onFull;
  }

  /** Work is not started if `isWanted` returns false when its turn comes. */
  async run<T>(
    teamId: string,
    work: () => Promise<T>,
    isWanted: () => boolean = () => true,
  ): Promise<T> {
    const line = this.#teams.getOrInsertComputed(teamId, newLine);
    if (this.#mayStart(line)) {
      this.#start(line);
    } else {
      if (line.waiting.length >= this.#bounds.teamWaitingMax) throw this.#onFull();
      await new Promise<void>((resolve) => line.waiting.push(resolve));
    }
    try {
      if (!isWanted()) throw new CallerLeft();
      return await work();
    } finally {
      this.#end(teamId, line);
    }
  }

  #mayStart(line: TeamLine): boolean {
    return this.#running < this.#bounds.runningMax && line.running < this.#bounds.teamRunningMax;
  }

  #start(line: TeamLine): void {
    this.#running += 1;
    line.running += 1;
  }

  #end(teamId: string, line: TeamLine): void {
    this.#running -= 1;
    line.running -= 1;
    // Move the team to the end of the queue.
    this.#teams.delete(teamId);
    if (line.running > 0 || line.waiting.length > 0) this.#teams.set(teamId, line);
    this.#startNext();
  }

  #startNext(): void {
    for (const [teamId, line] of this.#teams) {
      if (line.waiting.length === 0 || !this.#mayStart(line)) continue;
      this.#teams.delete(teamId);
      this.#teams.set(teamId, line);
      this.#start(line);
      line.waiting.shift()?.();
      return;
    }
  }
}

interface TeamLine {
  running: number;
  waiting: (() => void)[];
}

const newLine = (): TeamLine => ({ running: 0, waiting: [] });
