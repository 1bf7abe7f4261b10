import type { DatabaseSync } from 'node:sqlite';
import type { TeamMarks } from '../team-marks.ts';
import { inTransaction } from './connection.ts';
import { marksFromRow } from './rollup-tables.ts';

/** What a read needs to know about a team first, in the transaction in which it reads the rest. */
export interface TeamSnapshot {
  teamNo: number;
  /** `firstSeq` - 1 if there are no traces. */
  lastSeq: number;
  firstSeq: number;
  marks: TeamMarks;
}

/** Returns a function that reads the marks and the counter of a team; null if there is no such team. */
export function prepareSnapshots(db: DatabaseSync): (teamId: string) => TeamSnapshot | null {
  const read = db.prepare(`
    select t.no, coalesce(c.first_seq, 1) as first_seq, coalesce(c.last_seq, 0) as last_seq,
      m.generation, m.time_zone, m.hot_seq, m.wide_seq
    from teams t join team_marks m on m.team_no = t.no and m.is_active = 1
      left join team_counters c on c.team_no = t.no
    where t.id = ?`);
  return (teamId) => {
    const row = read.get(teamId);
    if (!row) return null;
    return {
      teamNo: row['no'] as number,
      firstSeq: row['first_seq'] as number,
      lastSeq: row['last_seq'] as number,
      marks: marksFromRow(row),
    };
  };
}

/**
 * Runs reads in one transaction, so that they see the same snapshot. They must be synchronous. If one fails, what it has put into
 * temporary tables is removed too, so that the next read does not find it.
 */
export function inSnapshot<T>(db: DatabaseSync, read: () => T): T {
  return inTransaction(db, read, 'begin');
}
