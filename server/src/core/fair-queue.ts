export interface FairQueueBounds {
  /** How many may run at once, of all teams together. */
  runningMax: number;
  /** How many of them may be one team's. */
  teamRunningMax: number;
  /** How many of one team may wait for their turn. */
  teamWaitingMax: number;
}

/** Lets work run in bounded numbers. Teams take turns, so that a long line of one team never delays another. */
export class FairQueue {
  readonly #bounds: FairQueueBounds;
  readonly #onFull: () => Error;
  /** Teams that run or wait. Those whose turn comes first stand first. */
  readonly #teams = new Map<string, TeamLine>();
  #running = 0;

  constructor(bounds: FairQueueBounds, onFull: () => Error) {
    this.#bounds = bounds;
    this.#onFull = onFull;
  }

  /** Work that is no longer wanted when its turn comes is not started. */
  async run<T>(
    teamId: string,
    work: () => Promise<T>,
    isWanted: () => boolean = () => true,
  ): Promise<T> {
    const line = this.#lineOf(teamId);
    if (!this.#mayStart(line)) {
      if (line.waiting.length >= this.#bounds.teamWaitingMax) throw this.#onFull();
      const { promise, resolve } = Promise.withResolvers<void>();
      line.waiting.push(resolve);
      await promise;
    } else {
      this.#start(line);
    }
    try {
      if (!isWanted()) throw this.#onFull();
      return await work();
    } finally {
      this.#end(teamId, line);
    }
  }

  #lineOf(teamId: string): TeamLine {
    let line = this.#teams.get(teamId);
    if (!line) {
      line = { running: 0, waiting: [] };
      this.#teams.set(teamId, line);
    }
    return line;
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
    // To the back of the line of teams.
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
