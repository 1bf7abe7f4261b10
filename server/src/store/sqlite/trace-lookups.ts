import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { lookupBlockBits, lookupFields, lookupHash } from '../trace-lookups.ts';
import type { LookupField, TraceLookups } from '../trace-lookups.ts';
import { prepareArrays } from './counted-traces.ts';
import type { ArrayStatement } from './counted-traces.ts';
import { rowIdOf, seqOfRowId, seqMax } from './row-id.ts';
import { inSnapshot, prepareSnapshots } from './team-snapshot.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

interface Statements {
  ofTail: ArrayStatement;
  ofBlock: ArrayStatement;
}

export function openTraceLookups(db: DatabaseSync): TraceLookups {
  const snapshotOf = prepareSnapshots(db);
  const seqsOf = prepareLookups(db);
  return {
    async lookUp(teamId, field, value, beforeSeq) {
      return inSnapshot(db, () => {
        const team = snapshotOf(teamId);
        return team ? seqsOf(team, field, value, beforeSeq) : [];
      });
    },
  };
}

/** Returns a function that looks up the traces of a value, newest first, at most `lookupRowsMax`, as of a snapshot. */
export function prepareLookups(
  db: DatabaseSync,
): (team: TeamSnapshot, field: LookupField, value: string, beforeSeq?: number) => number[] {
  const statements = new Map<LookupField, Statements>(
    lookupFields.map((field) => [field, prepareStatements(db, field)]),
  );
  return ({ teamNo, firstSeq, lastSeq, marks }, field, value, beforeSeq = seqMax) => {
    const read = statements.get(field);
    if (!read) return [];
    const rolledSeq = marks.rolledSeq.wide;
    const toSeq = Math.min(lastSeq, beforeSeq - 1);
    const tail = [teamNo, rolledSeq + 1, teamNo, toSeq] as const;
    const rows = read.ofTail.all(...tail, value, limits.lookupRowsMax);
    const hash = lookupHash(field, value);
    const lastLookup = Math.min(rolledSeq, toSeq);
    for (let block = blockOf(lastLookup); block >= blockOf(firstSeq); block--) {
      const missing = limits.lookupRowsMax - rows.length;
      if (missing <= 0) break;
      rows.push(...read.ofBlock.all(teamNo, block, hash, lastLookup, value, missing));
    }
    return rows.map(([seq]) => seq as number);
  };
}

function blockOf(seq: number): number {
  return Math.floor(seq / 2 ** lookupBlockBits);
}

function prepareStatements(db: DatabaseSync, field: LookupField): Statements {
  return {
    ofTail: prepareArrays(
      db,
      `select ${seqOfRowId} from traces where key between ${rowIdOf} and ${rowIdOf} and ${field} = ?
       order by key desc limit ?`,
    ),
    // Another value may have the same hash, so the trace decides.
    ofBlock: prepareArrays(
      db,
      `select l.seq from trace_lookups l join traces t on t.key = ((l.team_no << 40) | l.seq)
       where l.team_no = ? and l.block = ? and l.hash = ? and l.seq <= ? and t.${field} = ?
       order by l.seq desc limit ?`,
    ),
  };
}
