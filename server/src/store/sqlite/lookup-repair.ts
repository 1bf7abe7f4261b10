import type { DatabaseSync } from 'node:sqlite';
import { eachLookup } from '../trace-lookups.ts';
import { prepareArrays } from './array-statement.ts';
import { openCountedTraces } from './counted-traces.ts';
import { blockRows, packSeqs, unionOf, unpackSeqs } from './lookup-blocks.ts';
import { ofLookup } from './lookup-table.ts';

/** Rows of lookups to correct. */
export interface LookupRepair {
  block: number;
  /** By hash: sequence numbers that are wrong. There are none if a row is only out of order. */
  wrong: ReadonlyMap<number, ReadonlySet<number>>;
}

export function lookupBlocks(db: DatabaseSync, teamNo: number): number[] {
  const read = db.prepare(
    'select distinct block from trace_lookups where team_no = ? order by block',
  );
  return read.all(teamNo).map(({ block }) => block as number);
}

/** Finds lookups of values that their traces do not have. A rebuild has added missing ones. Null if all are right. */
export function findWrongLookups(
  rollups: DatabaseSync,
  truth: DatabaseSync,
  teamNo: number,
  block: number,
): LookupRepair | null {
  // First the lookups: those that are added later belong to traces that are read.
  const stored = prepareArrays(
    rollups,
    'select hash, seqs from trace_lookups where team_no = ? and block = ?',
  ).all(teamNo, block) as unknown as [hash: number, seqs: Uint8Array][];
  const right = new Map<number, Set<number>>();
  const range = { afterSeq: block * blockRows - 1, toSeq: (block + 1) * blockRows - 1 };
  openCountedTraces(truth).each(teamNo, range, blockRows, (trace, seq) => {
    eachLookup(trace, (hash) => right.getOrInsert(hash, new Set()).add(seq));
  });
  const wrong = new Map<number, ReadonlySet<number>>();
  for (const [hash, packed] of stored) {
    const seqs = unpackSeqs({ block, seqs: packed });
    const own = new Set(seqs).difference(right.get(hash) ?? new Set());
    const isInOrder = seqs.every((seq, i) => seq > (seqs[i - 1] ?? -1));
    if (own.size > 0 || !isInOrder) wrong.set(hash, own);
  }
  return wrong.size === 0 ? null : { block, wrong };
}

/** Only what was found to be wrong is removed: lookups of new traces may have been added since. */
export function repairLookups(
  db: DatabaseSync,
  teamNo: number,
  { block, wrong }: LookupRepair,
): void {
  const read = prepareArrays(db, `select seqs from trace_lookups where ${ofLookup}`);
  const replace = db.prepare(`update trace_lookups set seqs = ? where ${ofLookup}`);
  const remove = db.prepare(`delete from trace_lookups where ${ofLookup}`);
  for (const [hash, own] of wrong) {
    const stored = read.all(teamNo, block, hash)[0]?.[0] as unknown as Uint8Array | undefined;
    if (!stored) continue;
    const seqs = unpackSeqs({ block, seqs: stored }).filter((seq) => !own.has(seq));
    if (seqs.length > 0) replace.run(packSeqs(unionOf(seqs, [])), teamNo, block, hash);
    else remove.run(teamNo, block, hash);
  }
}
