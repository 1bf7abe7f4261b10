import { hash } from 'node:crypto';
import { compile } from '../core/compile.ts';
import { lookupKinds } from '../core/dimensions.ts';
import type { TraceFilter } from '../core/query.ts';
import type { NarrowTrace } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';

export type LookupField = keyof typeof lookupKinds;
export const lookupFields = Object.keys(lookupKinds) as readonly LookupField[];

export interface TraceLookups {
  /**
   * The sequence numbers of the traces with this value, newest first, at most `lookupRowsMax`; with `beforeSeq` only smaller ones.
   * It includes every committed trace.
   */
  lookUp(
    teamId: string,
    field: LookupField,
    value: string,
    beforeSeq?: number,
  ): Promise<readonly number[]>;
}

/** What traces can be looked up by, instead of reading all of them. */
export interface LookupQuestion {
  field: LookupField;
  values: readonly string[];
}

/** Null if the filter has no values that can be looked up. */
export function lookupQuestion(filter: TraceFilter): LookupQuestion | null {
  for (const field of lookupFields) {
    const accepted = filter[field];
    if (accepted === undefined || accepted === 'set' || accepted.includes(null)) continue;
    return { field, values: accepted.filter((value) => value !== null) };
  }
  return null;
}

/**
 * The traces of any of the values, newest first, in chunks. `lookUp` returns those of one value; fewer than `lookupRowsMax` are the
 * last ones.
 */
export async function* lookUpAll(
  values: readonly string[],
  beforeSeq: number,
  lookUp: (value: string, beforeSeq: number) => Promise<readonly number[]>,
): AsyncGenerator<readonly number[]> {
  const lines = values.map((value) => ({ value, endSeq: beforeSeq, isDone: false, seqs: noSeqs }));
  for (;;) {
    for (const line of lines) {
      if (line.isDone || line.seqs.length > 0) continue;
      line.seqs = await lookUp(line.value, line.endSeq);
      line.endSeq = line.seqs.at(-1) ?? line.endSeq;
      line.isDone = line.seqs.length < limits.lookupRowsMax;
    }
    // Older ones may follow in a line that is not done, so the others wait for it.
    const toSeq = Math.max(...lines.map((line) => (line.isDone ? -Infinity : line.endSeq)));
    const found = lines.flatMap(({ seqs }) => seqs.filter((seq) => seq >= toSeq));
    if (found.length === 0) return;
    yield found.sort((a, b) => b - a);
    for (const line of lines) line.seqs = line.seqs.filter((seq) => seq < toSeq);
  }
}

const noSeqs: readonly number[] = [];

/** Lookups are stored in blocks of this many bits of the sequence number, so that inserts touch one short range. */
export const lookupBlockBits = 14;

/** 48 bits of a hash of the field and the value. Several values may have the same, so the trace itself decides. */
export function lookupHash(field: LookupField, value: string): number {
  return hash('sha256', `${lookupKinds[field]}\u0000${value}`, 'buffer').readIntBE(0, 6);
}

/** Calls `add` with the hash of each value that a trace has. */
export const eachLookup = compile<(trace: NarrowTrace, add: (hash: number) => void) => void>(
  `(trace, add) => { ${lookupFields
    .map((name) => `if (trace.${name} !== null) add(lookupHash('${name}', trace.${name}));`)
    .join(' ')} }`,
  { lookupHash },
);
