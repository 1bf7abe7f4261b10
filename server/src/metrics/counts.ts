/** Plain counts on the hot path: a library's counters look up their labels each time, which costs more than the rest of a request's log. */

/** Counts by one name. Known names start at 0, so that the first event shows as an increase. */
export class CountsByName {
  readonly #counts: Map<string, number>;

  constructor(names: readonly string[] = []) {
    this.#counts = new Map(names.map((name) => [name, 0]));
  }

  add(name: string, amount = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + amount);
  }

  get entries(): readonly [string, number][] {
    return [...this.#counts];
  }
}

/** How many values there were up to each bound. */
export class Distribution {
  readonly bounds: readonly number[];
  /** Up to this bound but not up to the one before. The last is without a bound. */
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = [...bounds, Infinity].map(() => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at += 1;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  /** For each bound, and last without one: how many values were not larger. */
  get cumulative(): readonly number[] {
    let total = 0;
    return this.#counts.map((count) => (total += count));
  }
}
