import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { lookupFields, lookupHash } from '../trace-lookups.ts';
import type { LookupField, TraceLookups } from '../trace-lookups.ts';
import { prepareArrays } from './array-statement.ts';
import type { ArrayStatement, RowValues } from './array-statement.ts';
import { blockOf, unpackSeqs } from './lookup-blocks.ts';
import { ofLookup } from './lookup-table.ts';
import { rowIdOf, seqOfRowId, seqMax } from './row-id.ts';
import { TeamSnapshots } from './team-snapshot.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

interface Statements {
  ofTail: ArrayStatement;
  ofSeqs: ArrayStatement;
}

export function openTraceLookups(db: DatabaseSync): TraceLookups {
  const snapshots = new TeamSnapshots(db);
  const lookUp = prepareLookups(db);
  return {
    async lookUp(teamId, field, value, beforeSeq) {
      return snapshots.read(teamId, (team) => lookUp(team, field, value, beforeSeq)) ?? [];
    },
  };
}

/**
 * Returns a function that looks up the traces of a value, newest first, at most `lookupRowsMax`, as of a snapshot. Other values may have
 * the same hash: if `areChecked` is false, the caller reads the traces anyway and leaves out theirs.
 */
export function prepareLookups(
  db: DatabaseSync,
  areChecked = true,
): (team: TeamSnapshot, field: LookupField, value: string, beforeSeq?: number) => number[] {
  const ofBlock = prepareArrays(db, `select seqs from trace_lookups where ${ofLookup}`);
  const statements = new Map<LookupField, Statements>(
    lookupFields.map((field) => [field, prepareStatements(db, field)]),
  );

  /** The traces of a block that may have the value, newest first. */
  function candidates(teamNo: number, block: number, hash: number, lastSeq: number): number[] {
    const [row] = ofBlock.all(teamNo, block, hash);
    if (!row) return [];
    const seqs = unpackSeqs({ block, seqs: row[0] as unknown as Uint8Array });
    return seqs.filter((seq) => seq <= lastSeq).reverse();
  }

  return ({ teamNo, firstSeq, lastSeq, marks }, field, value, beforeSeq = seqMax) => {
    const read = statements.get(field);
    if (!read) return [];
    const rolledSeq = marks.seq;
    const toSeq = Math.min(lastSeq, beforeSeq - 1);
    const tail = [teamNo, rolledSeq + 1, teamNo, toSeq] as const;
    const found = seqsOf(read.ofTail.all(...tail, value, limits.lookupRowsMax));
    const hash = lookupHash(field, value);
    const lastLookup = Math.min(rolledSeq, toSeq);
    for (let block = blockOf(lastLookup); block >= blockOf(firstSeq); block--) {
      const missing = limits.lookupRowsMax - found.length;
      if (missing <= 0) break;
      const seqs = candidates(teamNo, block, hash, lastLookup);
      if (seqs.length === 0) continue;
      if (areChecked) found.push(...checked(read, teamNo, value, seqs, missing));
      else found.push(...seqs.slice(0, missing));
    }
    return found;
  };
}

function checked(
  { ofSeqs }: Statements,
  teamNo: number,
  value: string,
  seqs: readonly number[],
  rowsMax: number,
): number[] {
  return seqsOf(ofSeqs.all(JSON.stringify(seqs), teamNo, value, rowsMax));
}

function seqsOf(rows: readonly RowValues[]): number[] {
  return rows.map(([seq]) => seq as number);
}

function prepareStatements(db: DatabaseSync, field: LookupField): Statements {
  return {
    ofTail: prepareArrays(
      db,
      `select ${seqOfRowId} from traces where key between ${rowIdOf} and ${rowIdOf} and ${field} = ?
       order by key desc limit ?`,
    ),
    ofSeqs: prepareArrays(
      db,
      `select l.value from json_each(?) l cross join traces t on t.key = ((? << 40) | l.value)
       where t.${field} = ? limit ?`,
    ),
  };
}
