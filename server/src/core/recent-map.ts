/** Keeps what was used last, as long as all of it together weighs no more than a limit. */
export class RecentMap<T> implements Iterable<[name: string, value: T]> {
  readonly #weightMax: number;
  readonly #weightOf: (value: T) => number;
  /** The least recently used first. A value may have become heavier since it was kept. */
  readonly #entries = new Map<string, { value: T; weight: number }>();
  #weight = 0;

  constructor(weightMax: number, weightOf: (value: T) => number) {
    this.#weightMax = weightMax;
    this.#weightOf = weightOf;
  }

  get(name: string): T | undefined {
    return this.#entries.get(name)?.value;
  }

  /** Also says that a value was used. */
  keep(name: string, value: T): void {
    this.forget(name);
    const weight = this.#weightOf(value);
    this.#entries.set(name, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#weightMax) return;
      this.forget(oldest);
    }
  }

  forget(name: string): void {
    this.#weight -= this.#entries.get(name)?.weight ?? 0;
    this.#entries.delete(name);
  }

  *[Symbol.iterator](): Iterator<[name: string, value: T]> {
    for (const [name, { value }] of this.#entries) yield [name, value];
  }
}
