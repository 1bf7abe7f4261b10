import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Calendar } from '../../core/calendar.ts';
import { hasMetadataFilter, matchesMetadata } from '../../core/query.ts';
import type { Tally, TallyQuery, TimeRange } from '../../core/query.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { metadataText } from '../payload.ts';
import { lookUpAll, lookupQuestion } from '../trace-lookups.ts';
import type { LookupQuestion } from '../trace-lookups.ts';
import { countedColumnsOf, countedOfValues, prepareArrays } from './counted-traces.ts';
import type { ArrayStatement, RowValues } from './counted-traces.ts';
import { criteriaSql, errorTable, eventTime, isOfErrors } from './criteria-sql.ts';
import type { FilterSql } from './filter-sql.ts';
import { rowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';
import { refuseLarge } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { prepareLookups } from './trace-lookups.ts';

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
  const hasMetadata = hasMetadataFilter(query);
  for await (const rows of chunksOf(new Reading(db, team, query))) {
    for (const row of rows) {
      const metadata = row.slice(-2) as unknown as StoredMetadata;
      if (hasMetadata && !matchesMetadata(query, metadataText(...metadata))) continue;
      sheet.addTrace(countedOfValues(row));
    }
    refuseLarge(sheet);
    if (performance.now() > endMs) throw new Failure('question_too_wide');
    await nextTurn();
  }
  return sheet.tallies();
}

type StoredMetadata = [bytes: Uint8Array | null, zstdMask: number | null];

/** An entry of the index on times. Sequence numbers begin at 1. */
type TimeEntry = readonly [us: number, seq: number];

function chunksOf(reading: Reading): AsyncIterable<RowValues[]> {
  const { filter, range } = reading.query;
  const lookup = lookupQuestion(filter);
  if (lookup) return reading.byLookup(lookup);
  if (isOfErrors(filter) && (range === null || reading.hasFewerErrors(range))) {
    return reading.ofErrors();
  }
  return range === null ? reading.bySequence() : reading.byTime(range);
}

/** The ways to read the traces of a query in chunks. SQLite filters them: this takes a third of the time that JavaScript takes. */
class Reading {
  readonly query: TallyQuery;
  readonly #db: DatabaseSync;
  readonly #team: TeamSnapshot;
  readonly #where: FilterSql;
  readonly #columns: string;
  readonly #hasMetadata: boolean;

  constructor(db: DatabaseSync, team: TeamSnapshot, query: TallyQuery) {
    this.#db = db;
    this.#team = team;
    this.query = query;
    this.#where = criteriaSql(query);
    this.#hasMetadata = hasMetadataFilter(query);
    const columns = countedColumnsOf(query);
    this.#columns = this.#hasMetadata ? `${columns}, metadata, zstd_mask` : columns;
  }

  async *bySequence(): AsyncGenerator<RowValues[]> {
    const { teamNo, firstSeq, lastSeq } = this.#team;
    const read = this.#prepare(`key between ${rowIdOf} and ${rowIdOf}`);
    for (let seq = firstSeq; seq <= lastSeq; seq += limits.evaluationChunkRows) {
      const toSeq = Math.min(lastSeq, seq + limits.evaluationChunkRows - 1);
      yield read.all(teamNo, seq, teamNo, toSeq, ...this.#where.values);
    }
  }

  /** Through the index of errors. A chunk ends at one of its entries, so that its size does not depend on the filter. */
  async *ofErrors(): AsyncGenerator<RowValues[]> {
    const { teamNo, firstSeq, lastSeq } = this.#team;
    const readEnd = prepareArrays(
      this.#db,
      `select ${seqOfRowId} from ${errorTable} where ${errorsBetween}
       order by key limit 1 offset ${limits.evaluationChunkRows - 1}`,
    );
    const read = this.#prepare(errorsBetween, errorTable);
    for (let seq = firstSeq; seq <= lastSeq;) {
      const end = readEnd.all(teamNo, seq, teamNo, lastSeq)[0]?.[0] as number | undefined;
      const toSeq = end ?? lastSeq;
      yield read.all(teamNo, seq, teamNo, toSeq, ...this.#where.values);
      seq = toSeq + 1;
    }
  }

  /** Whether the team has fewer errors than there are traces in the range, as far as that is quickly known. */
  hasFewerErrors({ fromUs, toUs }: TimeRange): boolean {
    const { teamNo, firstSeq, lastSeq } = this.#team;
    const readError = prepareArrays(
      this.#db,
      `select 1 from ${errorTable} where ${errorsBetween} limit 1 offset ?`,
    );
    const readTrace = prepareArrays(
      this.#db,
      `select 1 from traces where ${teamOfRowId} = ? and ${eventTime} >= ? and ${eventTime} < ? limit 1 offset ?`,
    );
    for (let count = limits.evaluationChunkRows; count < limits.searchRangeRowsMax; count *= 2) {
      if (readTrace.all(teamNo, fromUs, toUs, count).length === 0) return false;
      if (readError.all(teamNo, firstSeq, teamNo, lastSeq, count).length === 0) return true;
    }
    return false;
  }

  /** A chunk ends at an entry of the index, so that its size does not depend on the filter. */
  async *byTime({ fromUs, toUs }: TimeRange): AsyncGenerator<RowValues[]> {
    const { teamNo, lastSeq } = this.#team;
    // SQLite does not use a comparison of pairs as a bound of this index, so the times are also compared alone.
    const after = `${teamOfRowId} = ? and ${eventTime} >= ? and (${eventTime}, key) > (?, ${rowIdOf})`;
    const readEnd = prepareArrays(
      this.#db,
      `select ${eventTime}, ${seqOfRowId} from traces where ${after} and ${eventTime} < ?
       order by ${eventTime}, key limit 1 offset ${limits.evaluationChunkRows - 1}`,
    );
    const read = this.#prepare(
      `${after} and ${eventTime} <= ? and (${eventTime}, key) <= (?, ${rowIdOf}) and +key <= ${rowIdOf}`,
    );
    for (let [us, seq]: TimeEntry = [fromUs, 0]; ;) {
      const start = [teamNo, us, us, teamNo, seq];
      const [end] = readEnd.all(...start, toUs) as unknown as TimeEntry[];
      const [endUs, endSeq] = end ?? [toUs, 0];
      const bounds = [...start, endUs, endUs, teamNo, endSeq, teamNo, lastSeq];
      yield read.all(...bounds, ...this.#where.values);
      if (!end) return;
      [us, seq] = end;
    }
  }

  async *byLookup({ field, values }: LookupQuestion): AsyncGenerator<RowValues[]> {
    const lookUp = prepareLookups(this.#db);
    const { teamNo, lastSeq } = this.#team;
    const read = this.#prepare('key in (select (? << 40) | value from json_each(?))');
    const found = lookUpAll(values, lastSeq + 1, async (value, beforeSeq) =>
      lookUp(this.#team, field, value, beforeSeq),
    );
    for await (const seqs of found) {
      yield read.all(teamNo, JSON.stringify(seqs), ...this.#where.values);
    }
  }

  #prepare(where: string, traces = 'traces'): ArrayStatement {
    const tables = this.#hasMetadata ? `${traces} left join trace_payloads using (key)` : traces;
    return prepareArrays(
      this.#db,
      `select ${this.#columns} from ${tables} where ${where}${this.#where.text}`,
    );
  }
}

const errorsBetween = `key between ${rowIdOf} and ${rowIdOf} and is_error = 1`;
