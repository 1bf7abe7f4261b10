import { compile } from '../../core/compile.ts';
import type { NarrowTrace } from '../../core/trace-fields.ts';
import { lookupFields, lookupHash } from '../trace-lookups.ts';
import type { LookupField } from '../trace-lookups.ts';
import { blockOf, packSeqs } from './lookup-blocks.ts';
import type { LookupRow } from './lookup-blocks.ts';

/** By value: the sequence numbers, ascending. */
type SeqsByValue = Map<string, number[]>;

/** The lookups of consecutive traces. Values repeat within a batch, so each is hashed once. */
export class LookupBatch {
  readonly #seqs = Object.fromEntries(lookupFields.map((field) => [field, new Map()])) as Record<
    LookupField,
    SeqsByValue
  >;

  /** How many different values there are. */
  get size(): number {
    return lookupFields.reduce((sum, field) => sum + this.#seqs[field].size, 0);
  }

  add(trace: NarrowTrace, seq: number): void {
    addSeqs(this.#seqs, trace, seq);
  }

  /** Empties the batch. The rows are in the order of the table, so that each of its pages is visited once. */
  take(): LookupRow[] {
    const rows: LookupRow[] = [];
    for (const field of lookupFields) {
      const seqs = this.#seqs[field];
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

const addSeqs = compile<
  (seqs: Record<LookupField, SeqsByValue>, trace: NarrowTrace, seq: number) => void
>(
  `(seqs, trace, seq) => { ${lookupFields
    .map((name) => `if (trace.${name} !== null) addSeq(seqs.${name}, trace.${name}, seq);`)
    .join(' ')} }`,
  { addSeq },
);

function addSeq(seqs: SeqsByValue, value: string, seq: number): void {
  const known = seqs.get(value);
  if (known) known.push(seq);
  else seqs.set(value, [seq]);
}

/** Ascending sequence numbers, one list for each block. */
function inBlocks(seqs: number[]): number[][] {
  const [first = 0, last = 0] = [seqs[0], seqs.at(-1)];
  return blockOf(first) === blockOf(last) ? [seqs] : [...Map.groupBy(seqs, blockOf).values()];
}
