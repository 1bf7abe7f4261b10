import type { NarrowTrace } from '../../core/trace-fields.ts';
import { lookupBlockBits, lookupFields, lookupHash } from '../trace-lookups.ts';
import type { LookupField } from '../trace-lookups.ts';

/** The lookups of consecutive traces. Values repeat within a batch, so each is hashed once. */
export class LookupBatch {
  /** By field and value: the sequence numbers, ascending. */
  readonly #seqs = new Map<LookupField, Map<string, number[]>>(
    lookupFields.map((field) => [field, new Map()]),
  );

  add(trace: NarrowTrace, seq: number): void {
    for (const [field, seqs] of this.#seqs) {
      const value = trace[field];
      if (value === null) continue;
      const known = seqs.get(value);
      if (known) known.push(seq);
      else seqs.set(value, [seq]);
    }
  }

  /** In the order of the table, so that each of its pages is visited once. */
  *inOrder(): Generator<{ hash: bigint; seq: number }> {
    const hashed = [...this.#seqs].flatMap(([field, seqs]) =>
      [...seqs].map(([value, own]) => ({ hash: lookupHash(field, value), seqs: own })),
    );
    hashed.sort((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0));
    for (const block of blocksOf(hashed.map(({ seqs }) => seqs))) {
      for (const { hash, seqs } of hashed) {
        for (const seq of seqs) if (blockOf(seq) === block) yield { hash, seq };
      }
    }
  }
}

/** One or two, since a batch is not larger than a block. */
function blocksOf(lists: readonly (readonly number[])[]): number[] {
  const blocks = new Set(lists.flatMap((seqs) => seqs.map(blockOf)));
  return [...blocks].sort((a, b) => a - b);
}

function blockOf(seq: number): number {
  return Math.floor(seq / 2 ** lookupBlockBits);
}
