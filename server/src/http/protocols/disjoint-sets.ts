/** The numbers from 0, each in a set, which can be joined. */
export class DisjointSets {
  readonly #parents: Uint32Array;
  /** Of each set, at its root. */
  readonly #sizes: Uint32Array;

  constructor(count: number) {
    this.#parents = Uint32Array.from({ length: count }, (_, i) => i);
    this.#sizes = new Uint32Array(count).fill(1);
  }

  /** The same number for all numbers of a set. */
  find(number: number): number {
    const parents = this.#parents;
    let root = number;
    while (parents[root] !== root) root = parents[root] as number;
    // The next search is shorter.
    for (let at = number; at !== root;) {
      const next = parents[at] as number;
      parents[at] = root;
      at = next;
    }
    return root;
  }

  /** Returns how many numbers are in the joined set. */
  join(one: number, other: number): number {
    const [a, b] = [this.find(one), this.find(other)];
    const size = a === b ? this.#sizeAt(a) : this.#sizeAt(a) + this.#sizeAt(b);
    const root = Math.min(a, b);
    this.#parents[Math.max(a, b)] = root;
    this.#sizes[root] = size;
    return size;
  }

  /** The members of each set, ascending. Sets are in the order of their first members. */
  groups(): number[][] {
    const byRoot = new Map<number, number[]>();
    for (const i of this.#parents.keys()) {
      byRoot.getOrInsertComputed(this.find(i), () => []).push(i);
    }
    return [...byRoot.values()];
  }

  #sizeAt(root: number): number {
    return this.#sizes[root] as number;
  }
}
