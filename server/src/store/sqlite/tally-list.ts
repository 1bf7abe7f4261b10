import type { DatabaseSync } from 'node:sqlite';
import type { Tally } from '../../core/query.ts';
import { limits } from '../../limits.ts';
import type { PlannedSums, Sums } from './sums.ts';

/** A list that is read in chunks, since its peer may be slow. */
export interface ReadableList {
  /** The next tallies; none at the end. */
  next(): readonly Tally[];
  close(): void;
}

export function tallyListOf(tallies: readonly Tally[]): ReadableList {
  let at = 0;
  return {
    next: () => tallies.slice(at, (at += limits.groupChunkRows)),
    close() {},
  };
}

/**
 * Stores the sums in a temporary table, so that a slow peer neither keeps a read transaction open nor fills the memory. It must run in the
 * transaction of the snapshot. Histograms are too long for that, so a list with percentiles is gathered in memory.
 */
export function openTallyList(
  db: DatabaseSync,
  sums: Sums,
  question: PlannedSums,
  table: string,
): ReadableList {
  if (question.query.sumsOnly !== true) return tallyListOf(sums.list(question));
  const { text, values } = sums.listSql(question);
  db.prepare(`create temp table ${table} as ${text}`).run(...values);
  const chunk = `select * from temp.${table} where rowid > ? order by rowid limit ${limits.groupChunkRows}`;
  let lastRow = 0;
  return {
    next() {
      const tallies = sums.rowsOf(question, chunk, lastRow);
      lastRow += tallies.length;
      return tallies;
    },
    close: () => db.exec(`drop table if exists temp.${table}`),
  };
}
