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
  readonly #numbers = new HashNumbers();
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

  /** The number of the group whose hash is at this place of the bytes; null if it is not known. */
  numberOf(bytes: Uint8Array, at: number): number | null {
    return this.#numbers.find(bytes, at);
  }

  groupAt(number: number): Group {
    const group = this.#groups[number];
    if (!group) throw new RangeError(`there is no group ${number}`);
    return group;
  }

  isErrorAt(number: number): boolean {
    return this.#areErrors[number] === true;
  }

  /** Reads groups that are not known yet, by their hashes in hexadecimal digits. Those that do not exist stay unknown. */
  learn(hashes: readonly string[]): void {
    const rows = this.#read.all(JSON.stringify(hashes), this.#teamNo);
    for (const [hash, ...columns] of rows as unknown as [string, ...GroupColumns][]) {
      const group = groupOfColumns(this.#set, columns);
      this.#numbers.add(Buffer.from(hash, 'hex'));
      this.#groups.push(group);
      this.#areErrors.push(group.status === 'error');
      for (const value of Object.values(group)) this.bytes += 2 * (value?.length ?? 0);
      this.bytes += groupBytes;
    }
  }
}

const directoryBytes = 1_000;
const groupBytes = 200;

export const hashBytes = 16;

export function hexOf(bytes: Uint8Array, at: number): string {
  return Buffer.from(bytes.subarray(at, at + hashBytes)).toString('hex');
}

/** Numbers hashes from 0, and finds them among other bytes without making a text of each. */
class HashNumbers {
  #count = 0;
  #hashes = new Uint8Array(64 * hashBytes);
  /** The number at the place that the first bytes of a hash say, or at the next free one; -1 is free. At least half of them are. */
  #slots = new Int32Array(128).fill(-1);

  find(bytes: Uint8Array, at: number): number | null {
    const number = this.#slots[this.#slotOf(bytes, at)] ?? -1;
    return number < 0 ? null : number;
  }

  add(hash: Uint8Array): void {
    if (2 * (this.#count + 1) > this.#slots.length) this.#grow();
    this.#hashes.set(hash, this.#count * hashBytes);
    this.#slots[this.#slotOf(hash, 0)] = this.#count;
    this.#count += 1;
  }

  /** Where the hash is, or where it belongs. */
  #slotOf(bytes: Uint8Array, at: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = firstBits(bytes, at) & mask;
    for (let number = slots[slot] ?? -1; number >= 0; number = slots[slot] ?? -1) {
      if (this.#isAt(number, bytes, at)) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #isAt(number: number, bytes: Uint8Array, at: number): boolean {
    const own = number * hashBytes;
    for (let i = 0; i < hashBytes; i++) {
      if (this.#hashes[own + i] !== bytes[at + i]) return false;
    }
    return true;
  }

  #grow(): void {
    const hashes = new Uint8Array(2 * this.#hashes.length);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    this.#slots = new Int32Array(2 * this.#slots.length).fill(-1);
    for (let number = 0; number < this.#count; number++) {
      this.#slots[this.#slotOf(hashes, number * hashBytes)] = number;
    }
  }
}

function firstBits(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}
