/** The numbers from 0, each in a set, which can be joined. */
export class DisjointSets {
  readonly #parents: Uint32Array;

  constructor(count: number) {
    this.#parents = Uint32Array.from({ length: count }, (_, i) => i);
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

  join(one: number, other: number): void {
    const [a, b] = [this.find(one), this.find(other)];
    this.#parents[Math.max(a, b)] = Math.min(a, b);
  }

  /** The members of each set, ascending. Sets are in the order of their first members. */
  groups(): number[][] {
    const byRoot = new Map<number, number[]>();
    for (const i of this.#parents.keys()) {
      byRoot.getOrInsertComputed(this.find(i), () => []).push(i);
    }
    return [...byRoot.values()];
  }
}
