import { lookupBlockBits } from '../trace-lookups.ts';

/** A row of lookups: the traces of a block that have a value with this hash. */
export interface LookupRow {
  block: number;
  hash: number;
  seqs: Uint8Array;
}

export const blockRows = 2 ** lookupBlockBits;

export function blockOf(seq: number): number {
  return Math.floor(seq / blockRows);
}

/** Two bytes for each sequence number of a block, highest first, so that SQLite can compare them. They must ascend. */
export function packSeqs(seqs: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(2 * seqs.length);
  for (const [i, seq] of seqs.entries()) {
    const offset = seq % blockRows;
    bytes[2 * i] = offset >> 8;
    bytes[2 * i + 1] = offset & 0xff;
  }
  return bytes;
}

/** A damaged row may have any bytes: the result is not always a list of numbers that ascend. */
export function unpackSeqs({ block, seqs }: Pick<LookupRow, 'block' | 'seqs'>): number[] {
  const first = block * blockRows;
  return Array.from(
    { length: Math.ceil(seqs.length / 2) },
    (_, i) => first + (((seqs[2 * i] ?? 0) << 8) | (seqs[2 * i + 1] ?? 0)),
  );
}

/** Ascending, each once. */
export function unionOf(a: readonly number[], b: readonly number[]): number[] {
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}
