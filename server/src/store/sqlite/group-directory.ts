import type { Group } from '../../core/rollup.ts';
import type { ArrayStatement } from './counted-traces.ts';
import { groupOfColumns } from './rollup-values.ts';
import type { GroupColumns } from './rollup-values.ts';

/** Numbers the groups of a set of one team, so that sums can be added up without their names. Each group is read once. */
export class GroupDirectory {
  readonly generation: number;
  readonly #teamNo: number;
  readonly #set: number;
  readonly #read: ArrayStatement;
  readonly #numbers = new Map<string, number>();
  readonly #groups: Group[] = [];
  readonly #areErrors: boolean[] = [];
  /** About what it takes in memory. */
  bytes = directoryBytes;

  constructor(teamNo: number, generation: number, set: number, read: ArrayStatement) {
    this.#teamNo = teamNo;
    this.generation = generation;
    this.#set = set;
    this.#read = read;
  }

  /** The number of a group, by its hash in hexadecimal digits. */
  numberOf(hash: string): number | undefined {
    return this.#numbers.get(hash);
  }

  groupAt(number: number): Group {
    const group = this.#groups[number];
    if (!group) throw new RangeError(`there is no group ${number}`);
    return group;
  }

  isErrorAt(number: number): boolean {
    return this.#areErrors[number] === true;
  }

  /** Reads groups that are not known yet. Those that do not exist stay unknown. */
  learn(hashes: readonly string[]): void {
    const rows = this.#read.all(JSON.stringify(hashes), this.#teamNo);
    for (const [hash, ...columns] of rows as unknown as [string, ...GroupColumns][]) {
      const group = groupOfColumns(this.#set, columns);
      this.#numbers.set(hash, this.#groups.length);
      this.#groups.push(group);
      this.#areErrors.push(group.status === 'error');
      for (const value of Object.values(group)) this.bytes += 2 * (value?.length ?? 0);
      this.bytes += groupBytes;
    }
  }
}

const directoryBytes = 1_000;
const groupBytes = 200;
