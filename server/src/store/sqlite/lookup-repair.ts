import type { DatabaseSync } from 'node:sqlite';
import { eachLookup, lookupBlockBits } from '../trace-lookups.ts';
import { openCountedTraces } from './counted-traces.ts';

interface Lookup {
  hash: bigint;
  seq: number;
}

export function lookupBlocks(db: DatabaseSync, teamNo: number): number[] {
  const read = db.prepare('select distinct block from trace_lookups where team_no = ?');
  return read.all(teamNo).map(({ block }) => block as number);
}

/** Lookups of values that their traces do not have. A rebuild adds missing ones, but only these must be found and deleted. */
export function wrongLookups(db: DatabaseSync, teamNo: number, block: number): Lookup[] {
  // First the lookups: those that are added later belong to traces that are read.
  const read = db.prepare('select hash, seq from trace_lookups where team_no = ? and block = ?');
  read.setReadBigInts(true);
  const stored = read.all(teamNo, block);
  const right = new Set<string>();
  const blockRows = 2 ** lookupBlockBits;
  const range = { afterSeq: block * blockRows - 1, toSeq: (block + 1) * blockRows - 1 };
  openCountedTraces(db).each(teamNo, range, blockRows, (trace, seq) => {
    eachLookup(trace, (hash) => right.add(`${hash} ${seq}`));
  });
  return stored
    .filter(({ hash, seq }) => !right.has(`${hash as bigint} ${seq as bigint}`))
    .map(({ hash, seq }) => ({ hash: hash as bigint, seq: Number(seq) }));
}

export function deleteLookups(
  db: DatabaseSync,
  teamNo: number,
  block: number,
  lookups: readonly Lookup[],
): void {
  const remove = db.prepare(
    'delete from trace_lookups where team_no = ? and block = ? and hash = ? and seq = ?',
  );
  for (const { hash, seq } of lookups) remove.run(teamNo, block, hash, seq);
}
