import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Calendar } from '../../core/calendar.ts';
import { hasMetadataFilter, matchesMetadata } from '../../core/query.ts';
import type { Tally, TallyQuery, TimeRange } from '../../core/query.ts';
import { splitAtDays } from '../../core/query-plan.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { metadataText } from '../payload.ts';
import { lookUpAll, lookupQuestion } from '../trace-lookups.ts';
import type { LookupQuestion } from '../trace-lookups.ts';
import { countedColumnsOf, countedOfValues, prepareArrays } from './counted-traces.ts';
import type { ArrayStatement, RowValues } from './counted-traces.ts';
import { criteriaSql, eventTime, isOfErrors } from './criteria-sql.ts';
import type { FilterSql } from './filter-sql.ts';
import { rowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';
import type { TallyReader } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { prepareLookups } from './trace-lookups.ts';

/** A query that is answered, or partly answered, from the traces themselves. */
export interface Evaluation {
  team: TeamSnapshot;
  /** With what was added up from rollups. */
  sheet: TallySheet;
  /** Which traces have to be added to the sheet. */
  parts: readonly TallyQuery[];
}

/** In the transaction of the snapshot: rollups are added up for the whole days of the range, if that is possible. */
export function beginEvaluation(
  reader: TallyReader,
  team: TeamSnapshot,
  query: TallyQuery,
  calendar: Calendar,
): Evaluation {
  const split = splitAtDays(query, calendar);
  if (!split) return { team, sheet: new TallySheet(query, calendar), parts: [query] };
  const { plan, days, edges } = split;
  const sheet = reader.sum(team, plan, days, calendar, limits.tallyRowsMax, query);
  if (!sheet) throw new Failure('question_too_wide');
  return { team, sheet, parts: edges };
}

/**
 * Adds traces to the sheet and returns all tallies. The sequence number at which the evaluation began is its snapshot, since traces never
 * change, except for costs while `reprice` runs. Other reads get a turn between two chunks.
 */
export async function evaluate(
  db: DatabaseSync,
  { team, sheet, parts }: Evaluation,
): Promise<Tally[]> {
  const endMs = performance.now() + limits.evaluationMsMax;
  for (const part of parts) {
    const hasMetadata = hasMetadataFilter(part);
    for await (const rows of chunksOf(new Reading(db, team, part))) {
      for (const row of rows) {
        const metadata = row.slice(-2) as unknown as StoredMetadata;
        if (hasMetadata && !matchesMetadata(part, metadataText(...metadata))) continue;
        sheet.addTrace(countedOfValues(row));
      }
      if (sheet.size > limits.tallyRowsMax || performance.now() > endMs)
        throw new Failure('question_too_wide');
      await nextTurn();
    }
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
  if (isOfErrors(filter)) return reading.byTime(range ?? everyTime, errorsByTime);
  return range === null ? reading.bySequence() : reading.byTime(range, tracesByTime);
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

  /** A chunk ends at an entry of the index, so that its size does not depend on the filter. */
  async *byTime(
    { fromUs, toUs }: TimeRange,
    index: TimeIndex,
    lastSeq = this.#team.lastSeq,
  ): AsyncGenerator<RowValues[]> {
    const { teamNo } = this.#team;
    // SQLite does not use a comparison of pairs as a bound of this index, so the times are also compared alone.
    const after = `${index.where}${teamOfRowId} = ? and ${eventTime} >= ? and (${eventTime}, key) > (?, ${rowIdOf})`;
    const readEnd = prepareArrays(
      this.#db,
      `select ${eventTime}, ${seqOfRowId} from ${index.table} where ${after} and ${eventTime} < ?
       order by ${eventTime}, key limit 1 offset ${limits.evaluationChunkRows - 1}`,
    );
    const read = this.#prepare(
      `${after} and ${eventTime} <= ? and (${eventTime}, key) <= (?, ${rowIdOf}) and +key <= ${rowIdOf}`,
      index.table,
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
    // The filter leaves out other values with the same hash.
    const lookUp = prepareLookups(this.#db, false);
    const { teamNo, firstSeq, lastSeq } = this.#team;
    let isFirst = true;
    const read = this.#prepare('key in (select (? << 40) | value from json_each(?))');
    const found = lookUpAll(values, lastSeq + 1, async (value, beforeSeq) =>
      lookUp(this.#team, field, value, beforeSeq),
    );
    for await (const seqs of found) {
      yield read.all(teamNo, JSON.stringify(seqs), ...this.#where.values);
      const oldestSeq = seqs.at(-1) ?? firstSeq;
      const { range } = this.query;
      const isMore = isFirst && seqs.length >= limits.lookupRowsMax;
      isFirst = false;
      if (!range || !isMore) continue;
      // If the older ones of a busy user are as frequent, the range may have fewer traces than are left to look up.
      const left = (seqs.length * (oldestSeq - firstSeq)) / (lastSeq - oldestSeq + 1);
      if (!this.#isShort(range, Math.min(left / 2, limits.lookupInsteadRowsMax))) continue;
      yield* this.byTime(range, tracesByTime, oldestSeq - 1);
      return;
    }
  }

  /** Whether a range has at most this many traces. */
  #isShort({ fromUs, toUs }: TimeRange, count: number): boolean {
    const read = prepareArrays(
      this.#db,
      `select 1 from traces where ${teamOfRowId} = ? and ${eventTime} >= ? and ${eventTime} < ? limit 1 offset ?`,
    );
    return read.all(this.#team.teamNo, fromUs, toUs, Math.floor(count)).length === 0;
  }

  #prepare(where: string, traces = 'traces'): ArrayStatement {
    const tables = this.#hasMetadata ? `${traces} left join trace_payloads using (key)` : traces;
    return prepareArrays(
      this.#db,
      `select ${this.#columns} from ${tables} where ${where}${this.#where.text}`,
    );
  }
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
