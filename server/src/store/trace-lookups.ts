import { hash } from 'node:crypto';
import { compile } from '../core/compile.ts';
import { lookupKinds } from '../core/dimensions.ts';
import type { NarrowTrace } from '../core/trace-fields.ts';

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
