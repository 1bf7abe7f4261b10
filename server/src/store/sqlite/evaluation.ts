import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Calendar } from '../../core/calendar.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { eventUs } from '../../core/rollup.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { countedColumns, countedOfValues, prepareArrays } from './counted-traces.ts';
import type { RowValues } from './counted-traces.ts';
import { rowIdOf, teamOfRowId } from './row-id.ts';
import { refuseLarge } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/**
 * Answers a query that no rollup covers from the traces themselves. Traces never change, so the sequence number at which it began is
 * its snapshot, and other reads get a turn between two chunks.
 */
export async function evaluate(
  db: DatabaseSync,
  team: TeamSnapshot,
  query: TallyQuery,
  calendar: Calendar,
): Promise<Tally[]> {
  const endMs = performance.now() + limits.evaluationMsMax;
  const sheet = new TallySheet(query, calendar);
  const next = chunks(db, team, query);
  for (;;) {
    const rows = next();
    for (const row of rows) sheet.addTrace(countedOfValues(row));
    refuseLarge(sheet);
    if (rows.length < limits.evaluationChunkRows) return sheet.tallies();
    if (performance.now() > endMs) throw new Failure('question_too_wide');
    await nextTurn();
  }
}

/** Returns a function that reads the next rows: by sequence number, or by the time of the call if the query has a range. */
function chunks(
  db: DatabaseSync,
  { teamNo, firstSeq, lastSeq }: TeamSnapshot,
  { range }: TallyQuery,
): () => RowValues[] {
  const read = (where: string, order: string) =>
    prepareArrays(
      db,
      `select ${countedColumns} from traces where ${where} order by ${order} limit ${limits.evaluationChunkRows}`,
    );
  if (range === null) {
    const statement = read(`key between ${rowIdOf} and ${rowIdOf}`, 'key');
    let seq = firstSeq;
    return () => {
      const rows = statement.all(teamNo, seq, teamNo, lastSeq);
      seq = ((rows.at(-1)?.[0] as number | undefined) ?? lastSeq) + 1;
      return rows;
    };
  }
  const statement = read(
    `${teamOfRowId} = ? and (${eventTime}, key) > (?, ${rowIdOf}) and ${eventTime} < ? and key <= ${rowIdOf}`,
    `${eventTime}, key`,
  );
  let after = [range.fromUs, teamNo, 0];
  return () => {
    const rows = statement.all(teamNo, ...after, range.toUs, teamNo, lastSeq);
    const last = rows.at(-1);
    if (last) after = [eventUs(countedOfValues(last)), teamNo, last[0] as number];
    return rows;
  };
}

/** Exactly as in the index. */
const eventTime = 'coalesce(started_at_us, created_at_us)';
