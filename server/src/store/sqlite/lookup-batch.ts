import type { NarrowTrace } from '../../core/trace-fields.ts';
import { lookupFields, lookupHash } from '../trace-lookups.ts';
import type { LookupField } from '../trace-lookups.ts';
import { blockOf, packSeqs } from './lookup-blocks.ts';
import type { LookupRow } from './lookup-blocks.ts';

/** The lookups of consecutive traces. Values repeat within a batch, so each is hashed once. */
export class LookupBatch {
  /** By field and value: the sequence numbers, ascending. */
  readonly #seqs = new Map<LookupField, Map<string, number[]>>(
    lookupFields.map((field) => [field, new Map()]),
  );

  /** How many different values there are. */
  get size(): number {
    let size = 0;
    for (const seqs of this.#seqs.values()) size += seqs.size;
    return size;
  }

  add(trace: NarrowTrace, seq: number): void {
    for (const [field, seqs] of this.#seqs) {
      const value = trace[field];
      if (value === null) continue;
      const known = seqs.get(value);
      if (known) known.push(seq);
      else seqs.set(value, [seq]);
    }
  }

  /** Empties the batch. The rows are in the order of the table, so that each of its pages is visited once. */
  take(): LookupRow[] {
    const rows: LookupRow[] = [];
    for (const [field, seqs] of this.#seqs) {
      for (const [value, own] of seqs) {
        const hash = lookupHash(field, value);
        for (const part of inBlocks(own)) {
          rows.push({ block: blockOf(part[0] ?? 0), hash, seqs: packSeqs(part) });
        }
      }
      seqs.clear();
    }
    return rows.sort((a, b) => a.block - b.block || a.hash - b.hash);
  }
}

/** Ascending sequence numbers, one list for each block. */
function inBlocks(seqs: number[]): number[][] {
  const [first = 0, last = 0] = [seqs[0], seqs.at(-1)];
  return blockOf(first) === blockOf(last) ? [seqs] : [...Map.groupBy(seqs, blockOf).values()];
}
