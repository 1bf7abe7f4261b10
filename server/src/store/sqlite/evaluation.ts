import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Calendar } from '../../core/calendar.ts';
import { hasMetadataFilter, matchesMetadata } from '../../core/query.ts';
import type { TallyQuery, TimeRange } from '../../core/query.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { metadataText } from '../payload.ts';
import { lookUpAll, lookupQuestion } from '../trace-lookups.ts';
import type { LookupQuestion } from '../trace-lookups.ts';
import { prepareArrays } from './array-statement.ts';
import { matchingRows } from './counted-traces.ts';
import type { ArrayStatement, RowValues } from './array-statement.ts';
import { criteriaSql, eventTime, isOfErrors } from './criteria-sql.ts';
import type { FilterSql } from './filter-sql.ts';
import { rowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { prepareLookups } from './trace-lookups.ts';

/**
 * Answers a query from the traces themselves. The sequence number at which it began is its snapshot, since traces never change, except for
 * costs while `reprice` runs. Other reads get a turn between two chunks.
 */
export async function evaluate(
  db: DatabaseSync,
  team: TeamSnapshot,
  query: TallyQuery,
  calendar: Calendar,
): Promise<TallySheet> {
  const endMs = performance.now() + limits.evaluationMsMax;
  const sheet = new TallySheet(query, calendar);
  const hasMetadata = hasMetadataFilter(query);
  const { columns, traceOf } = matchingRows(query.groupBy);
  for await (const rows of chunksOf(new Reading(db, team, query, columns))) {
    for (const row of rows) {
      if (hasMetadata && !matchesMetadata(query, metadataText(...metadataIn(row)))) continue;
      sheet.addMatching(traceOf(row));
    }
    if (sheet.size > limits.tallyRowsMax || performance.now() > endMs) {
      throw new Failure('question_too_wide');
    }
    await nextTurn();
  }
  return sheet;
}

function metadataIn(row: RowValues): StoredMetadata {
  return row.slice(-2) as unknown as StoredMetadata;
}

type StoredMetadata = [bytes: Uint8Array | null, zstdMask: number | null];

function chunksOf(reading: Reading): AsyncIterable<RowValues[]> {
  const { filter, range } = reading.query;
  const lookup = lookupQuestion(filter);
  if (lookup) return reading.byLookup(lookup);
  if (isOfErrors(filter)) return reading.byTime(range ?? everyTime, errorsByTime);
  return range === null ? reading.bySequence() : reading.byTime(range, tracesByTime);
}

/** The ways to read the traces of a query in chunks. SQLite filters them: this takes a third of the time that JavaScript takes. */
class Reading {
  readonly query: TallyQuery;
  readonly #db: DatabaseSync;
  readonly #team: TeamSnapshot;
  /** What a trace has to match, with and without the range. */
  readonly #where: FilterSql;
  readonly #filter: FilterSql;
  readonly #columns: string;
  readonly #hasMetadata: boolean;

  constructor(db: DatabaseSync, team: TeamSnapshot, query: TallyQuery, columns: string) {
    this.#db = db;
    this.#team = team;
    this.query = query;
    this.#where = criteriaSql(query);
    this.#filter = criteriaSql({ ...query, range: null });
    this.#hasMetadata = hasMetadataFilter(query);
    this.#columns = this.#hasMetadata ? `${columns}, metadata, zstd_mask` : columns;
  }

  async *bySequence(): AsyncGenerator<RowValues[]> {
    const { teamNo, firstSeq, lastSeq } = this.#team;
    const read = this.#prepare(`key between ${rowIdOf} and ${rowIdOf}`, this.#where);
    for (let seq = firstSeq; seq <= lastSeq; seq += limits.evaluationChunkRows) {
      const toSeq = Math.min(lastSeq, seq + limits.evaluationChunkRows - 1);
      yield read.all(teamNo, seq, teamNo, toSeq, ...this.#where.values);
    }
  }

  /** A chunk ends at an entry of the index, so that its size does not depend on the filter. */
  async *byTime(
    { fromUs, toUs }: TimeRange,
    index: TimeIndex,
    lastSeq = this.#team.lastSeq,
  ): AsyncGenerator<RowValues[]> {
    const { teamNo } = this.#team;
    const inRange = `${index.where}${teamOfRowId} = ? and ${eventTime} >= ? and ${eventTime} < ?`;
    const readEnd = prepareArrays(
      this.#db,
      `select ${eventTime} from ${index.table} where ${inRange}
       order by ${eventTime} limit 1 offset ${limits.evaluationChunkRows}`,
    );
    const read = this.#prepare(`${inRange} and +key <= ${rowIdOf}`, this.#filter, index.table);
    for (let us = fromUs; us < toUs;) {
      const [end] = readEnd.all(teamNo, us, toUs) as unknown as [number][];
      const [endUs] = end ?? [toUs];
      if (endUs > us) {
        yield read.all(teamNo, us, endUs, teamNo, lastSeq, ...this.#filter.values);
        us = endUs;
      } else {
        yield* this.#atTime(us, index, lastSeq);
        us += 1;
      }
    }
  }

  /** If more traces than a chunk have the same time. */
  async *#atTime(us: number, index: TimeIndex, lastSeq: number): AsyncGenerator<RowValues[]> {
    const { teamNo } = this.#team;
    const after = `${index.where}${teamOfRowId} = ? and ${eventTime} = ? and key > ${rowIdOf}`;
    const readEnd = prepareArrays(
      this.#db,
      `select ${seqOfRowId} from ${index.table} where ${after} and key <= ${rowIdOf}
       order by key limit 1 offset ${limits.evaluationChunkRows - 1}`,
    );
    const read = this.#prepare(`${after} and key <= ${rowIdOf}`, this.#filter, index.table);
    for (let seq = 0; seq < lastSeq;) {
      const start = [teamNo, us, teamNo, seq, teamNo];
      const [end] = readEnd.all(...start, lastSeq) as unknown as [number][];
      const [endSeq] = end ?? [lastSeq];
      yield read.all(...start, endSeq, ...this.#filter.values);
      seq = endSeq;
    }
  }

  async *byLookup({ field, values }: LookupQuestion): AsyncGenerator<RowValues[]> {
    // The filter leaves out other values with the same hash.
    const lookUp = prepareLookups(this.#db, false);
    const { teamNo, firstSeq, lastSeq } = this.#team;
    const { range } = this.query;
    const read = this.#prepare('key in (select (? << 40) | value from json_each(?))', this.#where);
    const found = lookUpAll(values, lastSeq + 1, async (value, beforeSeq) =>
      lookUp(this.#team, field, value, beforeSeq),
    );
    let isFirst = true;
    for await (const seqs of found) {
      yield read.all(teamNo, JSON.stringify(seqs), ...this.#where.values);
      const oldestSeq = seqs.at(-1) ?? firstSeq;
      const isMore = isFirst && seqs.length >= limits.lookupRowsMax;
      isFirst = false;
      if (!range || !isMore) continue;
      // If the older ones of a busy user are as frequent, the range may have fewer traces than are left to look up.
      const left = (seqs.length * (oldestSeq - firstSeq)) / (lastSeq - oldestSeq + 1);
      if (!isShort(this.#db, teamNo, range, left / 2)) continue;
      yield* this.byTime(range, tracesByTime, oldestSeq - 1);
      return;
    }
  }

  #prepare(where: string, { text }: FilterSql, traces = 'traces'): ArrayStatement {
    const tables = this.#hasMetadata ? `${traces} left join trace_payloads using (key)` : traces;
    return prepareArrays(this.#db, `select ${this.#columns} from ${tables} where ${where}${text}`);
  }
}

/** Whether a range has at most this many traces, and few enough to read all of them. */
function isShort(
  db: DatabaseSync,
  teamNo: number,
  { fromUs, toUs }: TimeRange,
  count: number,
): boolean {
  const read = prepareArrays(
    db,
    `select 1 from traces where ${teamOfRowId} = ? and ${eventTime} >= ? and ${eventTime} < ? limit 1 offset ?`,
  );
  const countMax = Math.floor(Math.min(count, limits.lookupInsteadRowsMax));
  return read.all(teamNo, fromUs, toUs, countMax).length === 0;
}

/** An index on times, and what its traces have in common. */
interface TimeIndex {
  table: string;
  where: string;
}

const tracesByTime: TimeIndex = { table: 'traces', where: '' };
const errorsByTime: TimeIndex = {
  table: 'traces indexed by errors_by_event_time',
  where: 'is_error = 1 and ',
};

const everyTime: TimeRange = { fromUs: -(2 ** 53), toUs: 2 ** 53 };
