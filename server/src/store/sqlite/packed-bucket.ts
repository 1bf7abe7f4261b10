import type { MeasuresSum } from '../../core/measures-sum.ts';
import type { GroupDirectory } from './group-directory.ts';

/** The rollups of one bucket, as short as they are stored. */
export interface PackedBucket {
  /** The number of the group of each rollup. */
  groups: Uint32Array;
  /** Where each rollup begins in the bytes; the last entry is where the last one ends. */
  starts: Uint32Array;
  /** Of each rollup its calls and the length of its sums as varints, its sums, and its latencies. */
  bytes: Uint8Array;
}

export function bytesOf({ groups, starts, bytes }: PackedBucket): number {
  return bucketBytes + groups.byteLength + starts.byteLength + bytes.byteLength;
}

const bucketBytes = 400;

/** Adds one of the rollups of a bucket to a sum. */
export function addRollup(
  sum: MeasuresSum,
  { starts, bytes }: PackedBucket,
  place: number,
  isError: boolean,
): void {
  let at = starts[place] ?? 0;
  let byte = bytes[at++] ?? 0;
  let calls = byte & 0x7f;
  for (let unit = 0x80; byte >= 0x80; unit *= 0x80) {
    byte = bytes[at++] ?? 0;
    calls += (byte & 0x7f) * unit;
  }
  byte = bytes[at++] ?? 0;
  let length = byte & 0x7f;
  for (let unit = 0x80; byte >= 0x80; unit *= 0x80) {
    byte = bytes[at++] ?? 0;
    length += (byte & 0x7f) * unit;
  }
  sum.addPacked(calls, isError, bytes, at, at + length, starts[place + 1] ?? 0);
}

/**
 * What a statement selects so that many rollups come as one text. SQLite writes it, and this file reads it, in a tenth of the time that an
 * array of blobs for each row takes.
 */
export const packedText = `group_concat(hex(group_hash) || calls || 'G' || hex(sums) || 'G' || hex(latencies) || 'G', '')`;

const hashDigits = 32;
const delimiter = 'G'.charCodeAt(0);

const digitValues = new Uint8Array(128);
for (const [value, digit] of '0123456789ABCDEF'.split('').entries()) {
  digitValues[digit.charCodeAt(0)] = value;
}

/** Packs texts of one bucket. */
export class BucketPacker {
  readonly #directory: GroupDirectory;
  #groups: number[] = [];
  #starts: number[] = [];
  #bytes = new Uint8Array(1024);
  #length = 0;

  constructor(directory: GroupDirectory) {
    this.#directory = directory;
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  add(text: string): void {
    this.#makeRoom(text.length);
    const chars = Buffer.from(text, 'latin1');
    let row = 0;
    for (const number of this.#numbersIn(text)) {
      const start = this.#length;
      row = this.#addRollup(chars, row + hashDigits);
      // Its group is missing, so no question can be about it.
      if (number === undefined) this.#length = start;
      else {
        this.#groups.push(number);
        this.#starts.push(start);
      }
    }
  }

  packed(): PackedBucket {
    return {
      groups: Uint32Array.from(this.#groups),
      starts: Uint32Array.from([...this.#starts, this.#length]),
      bytes: this.#bytes.slice(0, this.#length),
    };
  }

  /** The number of the group of each rollup. */
  #numbersIn(text: string): (number | undefined)[] {
    const directory = this.#directory;
    const numbers: (number | undefined)[] = [];
    const unknown = new Map<number, string>();
    for (let at = 0; at < text.length;) {
      const hash = text.slice(at, at + hashDigits);
      const number = directory.numberOf(hash);
      if (number === undefined) unknown.set(numbers.length, hash);
      numbers.push(number);
      at += hashDigits;
      for (let part = 0; part < 3; part++) at = text.indexOf('G', at) + 1;
    }
    if (unknown.size > 0) directory.learn([...unknown.values()]);
    for (const [row, hash] of unknown) numbers[row] = directory.numberOf(hash);
    return numbers;
  }

  /** Returns where the next rollup begins in the text. */
  #addRollup(chars: Uint8Array, from: number): number {
    let at = from;
    let calls = 0;
    for (; chars[at] !== delimiter; at++) calls = calls * 10 + (digitValues[chars[at] ?? 0] ?? 0);
    const sumsAt = at + 1;
    const sumsEnd = chars.indexOf(delimiter, sumsAt);
    this.#addVarint(calls);
    this.#addVarint((sumsEnd - sumsAt) / 2);
    this.#addHex(chars, sumsAt);
    return this.#addHex(chars, sumsEnd + 1) + 1;
  }

  #addVarint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
    }
    this.#bytes[this.#length++] = rest;
  }

  /** Returns where the delimiter is. */
  #addHex(chars: Uint8Array, from: number): number {
    const bytes = this.#bytes;
    let at = from;
    for (; chars[at] !== delimiter; at += 2) {
      const high = digitValues[chars[at] ?? 0] ?? 0;
      bytes[this.#length++] = high * 16 + (digitValues[chars[at + 1] ?? 0] ?? 0);
    }
    return at;
  }

  /** A text is always longer than what is packed of it. */
  #makeRoom(chars: number): void {
    if (this.#length + chars <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + chars));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
