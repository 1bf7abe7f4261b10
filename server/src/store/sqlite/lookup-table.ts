import type { DatabaseSync } from 'node:sqlite';
import { prepareArrays } from './array-statement.ts';
import { packSeqs, unionOf, unpackSeqs } from './lookup-blocks.ts';
import type { LookupRow } from './lookup-blocks.ts';

export interface LookupTable {
  /** Adds lookups. Adding one again does nothing. */
  add(teamNo: number, rows: readonly LookupRow[]): void;
}

export function openLookupTable(db: DatabaseSync): LookupTable {
  // Almost all are newer than the stored ones, and are appended without reading those. A damaged row may end inside a number.
  const append = db.prepare(`
    insert into trace_lookups (team_no, block, hash, seqs) values (?, ?, ?, ?)
    on conflict do update set seqs = cast(seqs || excluded.seqs as blob)
    where substr(seqs, -2) < substr(excluded.seqs, 1, 2) and length(seqs) % 2 = 0`);
  const read = prepareArrays(db, `select seqs from trace_lookups where ${ofLookup}`);
  const replace = db.prepare(`update trace_lookups set seqs = ? where ${ofLookup}`);
  return {
    add(teamNo, rows) {
      for (const row of rows) {
        const { block, hash, seqs } = row;
        if (append.run(teamNo, block, hash, seqs).changes > 0) continue;
        const stored = read.all(teamNo, block, hash)[0]?.[0] as unknown as Uint8Array;
        const union = packSeqs(unionOf(unpackSeqs({ block, seqs: stored }), unpackSeqs(row)));
        if (Buffer.compare(union, stored) !== 0) replace.run(union, teamNo, block, hash);
      }
    },
  };
}

export const ofLookup = 'team_no = ? and block = ? and hash = ?';
