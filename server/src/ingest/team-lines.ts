/** Work that waits for its turn. */
interface Item {
  /** How much it is, in the unit of `turnWork`. */
  work: number;
}

interface Line<T> {
  items: T[];
  /** How much work the team may start before the next team has its turn. */
  credit: number;
}

/**
 * Waiting work by team, handed out in turns (deficit round robin): each turn of a team is worth the same amount of work, so a team with
 * large requests gets no more than a team with small ones. The work of one team stays in order.
 */
export class TeamLines<T extends Item> {
  readonly #turnWork: number;
  readonly #lines = new Map<string, Line<T>>();

  constructor(turnWork: number) {
    this.#turnWork = turnWork;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  has(teamId: string): boolean {
    return this.#lines.has(teamId);
  }

  push(teamId: string, item: T): void {
    this.#lines.getOrInsertComputed(teamId, () => ({ items: [], credit: 0 })).items.push(item);
  }

  /** Removes and returns what is next; undefined if there is no room for any team's first item. */
  shift(hasRoom: (teamId: string, item: T) => boolean): T | undefined {
    let withoutRoom = 0;
    while (withoutRoom < this.#lines.size) {
      const [[teamId, line]] = this.#lines as unknown as [[string, Line<T>]];
      const item = line.items[0] as T;
      if (!hasRoom(teamId, item)) {
        withoutRoom += 1;
        this.#moveToEnd(teamId, line);
      } else if (line.credit < item.work) {
        withoutRoom = 0;
        line.credit += this.#turnWork;
        if (line.credit < item.work) this.#moveToEnd(teamId, line);
      } else {
        line.credit -= item.work;
        line.items.shift();
        if (line.items.length === 0) this.#lines.delete(teamId);
        else if (line.credit < (line.items[0] as T).work) this.#moveToEnd(teamId, line);
        return item;
      }
    }
    return undefined;
  }

  #moveToEnd(teamId: string, line: Line<T>): void {
    this.#lines.delete(teamId);
    this.#lines.set(teamId, line);
  }
}
