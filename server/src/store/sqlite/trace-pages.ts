import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { payloadNames } from '../../core/trace-fields.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import type { Trace } from '../../core/trace.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import { chunkWork, pageRange, tracesMissing } from '../page-range.ts';
import { emptyCounter } from '../sequencer.ts';
import { countedFromRow, shortColumns, traceColumns, traceFromRow } from '../trace-rows.ts';
import type { ListRequest, PageRequest, TraceChunks, TraceReader } from '../trace-reader.ts';
import type { ReadingClient } from './reading-client.ts';
import { rowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';

const teamNo = '(select no from teams where id = ?)';

interface TeamNumber {
  id: string;
  no: number;
}

/**
 * Reads traces on a separate connection, so that reads neither wait for the writer nor delay it. Every statement is read to its end
 * before anything else runs: an open one would keep the connection at its old snapshot and hide acknowledged traces.
 */
export function openTracePages(
  db: DatabaseSync,
  reading: Pick<ReadingClient, 'search' | 'ordered'>,
): Pick<TraceReader, 'page' | 'trace' | 'narrow' | 'range' | 'search' | 'ordered'> {
  const begin = db.prepare('begin');
  const end = db.prepare('commit');
  const readCounter = db.prepare(
    `select team_no, first_seq, last_seq from team_counters where team_no = ${teamNo}`,
  );
  const readTrace = db.prepare(`
    select ${traceColumns} from ${traceTables} where id = ? and ${teamOfRowId} = ${teamNo}`);
  const readNarrow = db.prepare(`
    select ${shortColumns} from traces where id = ? and ${teamOfRowId} = ${teamNo}`);
  const readForward = db.prepare(`
    select ${traceColumns} from ${traceTables} where key between ${rowIdOf} and ${rowIdOf} order by key`);
  const readDown = listStatements(db, `key between ${rowIdOf} and ${rowIdOf} order by key desc`);
  const readOne = listStatements(db, `key = ${rowIdOf}`);

  /** Traces from `fromSeq` down to `toSeq`, or fewer if their payloads fill a chunk before that. */
  function readChunk(team: TeamNumber, fromSeq: number, toSeq: number, request: ListRequest) {
    const traces: Trace[] = [];
    let chars = 0;
    let seq = fromSeq + 1;
    for (const row of readDown(request).iterate(team.no, toSeq, team.no, fromSeq)) {
      const trace = traceFromRow(row, team.id, request.previewChars);
      traces.push(trace);
      seq = row['seq'] as number;
      chars += (row['skipped_bytes'] as number) + chunkWork(row, trace, request);
      if (chars >= limits.pageChunkBytesMax) break;
    }
    if (traces.length === 0) throw tracesMissing(`up to ${fromSeq}`);
    return { traces, nextSeq: seq - 1 };
  }

  /** The first of the chosen traces, as many as fit into a chunk. */
  function readChosen(team: TeamNumber, seqs: readonly number[], request: ListRequest): Trace[] {
    const traces: Trace[] = [];
    let chars = 0;
    for (const seq of seqs) {
      const row = readOne(request).get(team.no, seq);
      if (!row) throw tracesMissing(`with number ${seq}`);
      const trace = traceFromRow(row, team.id, request.previewChars);
      traces.push(trace);
      chars += (row['skipped_bytes'] as number) + chunkWork(row, trace, request);
      if (chars >= limits.pageChunkBytesMax) break;
    }
    return traces;
  }

  /** Traces in the given order. Only a chunk of them is in memory at once. */
  function chosen(teamId: string, seqs: readonly number[], request: ListRequest): TraceChunks {
    const team = { id: teamId, no: (readCounter.get(teamId)?.['team_no'] ?? 0) as number };
    const first = readChosen(team, seqs, request);
    async function* rest() {
      for (let at = first.length; at < seqs.length;) {
        await nextTurn();
        const traces = readChosen(team, seqs.slice(at), request);
        at += traces.length;
        yield traces;
      }
    }
    return { first, rest: first.length === seqs.length ? null : rest() };
  }

  /** Reads the counter and the first chunk in one transaction, so that they are consistent. */
  function readFirstChunk(teamId: string, request: PageRequest) {
    begin.run();
    try {
      const row = readCounter.get(teamId);
      const team = { id: teamId, no: (row?.['team_no'] ?? 0) as number };
      const counter = {
        ...emptyCounter,
        ...(row && { firstSeq: row['first_seq'] as number, lastSeq: row['last_seq'] as number }),
      };
      const { total, fromSeq, toSeq } = pageRange(counter, request);
      const chunk = fromSeq < toSeq ? emptyPage : readChunk(team, fromSeq, toSeq, request);
      return { total, team, first: chunk.traces, nextSeq: chunk.nextSeq, toSeq };
    } finally {
      if (db.isTransaction) end.run();
    }
  }

  return {
    async page(teamId, request) {
      const { total, team, first, nextSeq, toSeq } = readFirstChunk(teamId, request);
      // Traces never change, so the later chunks need no transaction, and a slow reader keeps nothing open.
      async function* rest() {
        for (let seq = nextSeq; seq >= toSeq;) {
          // Other requests take their turn between two chunks.
          await nextTurn();
          const chunk = readChunk(team, seq, toSeq, request);
          seq = chunk.nextSeq;
          yield chunk.traces;
        }
      }
      return { total, first, rest: nextSeq < toSeq ? null : rest() };
    },
    async search(teamId, request, isWanted) {
      const { criteria, beforeSeq, limit: rowsMax } = request;
      const bounds = { beforeSeq, rowsMax, msMax: limits.searchMsMax };
      const { seqs, next } = await reading.search(teamId, criteria, bounds, isWanted);
      return { ...chosen(teamId, seqs, request), next };
    },
    async ordered(teamId, request, isWanted) {
      const { field, value, after, limit: rowsMax } = request;
      const { seqs, next } = await reading.ordered(
        teamId,
        { field, value, after, rowsMax },
        isWanted,
      );
      return { ...chosen(teamId, seqs, request), next };
    },
    async trace(teamId, id) {
      const row = readTrace.get(uuidBytes(id), teamId);
      return row ? traceFromRow(row, teamId) : null;
    },
    async narrow(teamId, id) {
      const row = readNarrow.get(uuidBytes(id), teamId);
      return row ? countedFromRow(row) : null;
    },
    async range(teamId, { firstSeq, count }) {
      const no = readCounter.get(teamId)?.['team_no'] as number | undefined;
      const rows = no === undefined ? [] : readForward.all(no, firstSeq, no, firstSeq + count - 1);
      if (rows.length !== count) throw tracesMissing(`from ${firstSeq}`);
      return rows.map((row) => traceFromRow(row, teamId));
    },
  };
}

const emptyPage = { traces: [], nextSeq: -1 };

/** One statement for each set of payloads, whole or shortened: omitted payloads are not read from disk. */
function listStatements(db: DatabaseSync, where: string): (request: ListRequest) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  const stored = storedOrder(db);
  return ({ omit, previewChars = null }) => {
    const payloads = stored.filter((name) => !omit.has(name));
    const columns = [
      `${seqOfRowId} as seq`,
      shortColumns,
      'zstd_mask',
      ...(previewChars === null ? payloads : cutPayloads(payloads)),
      // It can be compared only if everything is read.
      ...(previewChars === null && omit.size === 0 ? ['checksum'] : []),
      `${walkedOver(stored, omit)} as skipped_bytes`,
    ].join(', ');
    let statement = prepared.get(columns);
    if (!statement) {
      statement = db.prepare(`select ${columns} from ${traceTables} where ${where}`);
      prepared.set(columns, statement);
    }
    return statement;
  };
}

const traceTables = 'traces left join trace_payloads using (key)';

/** The payloads in the order in which they lie in a row. */
function storedOrder(db: DatabaseSync): PayloadName[] {
  const columns = db.prepare("select name from pragma_table_info('trace_payloads') order by cid");
  const names = columns.all().map(({ name }) => name);
  return payloadNames.toSorted((a, b) => names.indexOf(a) - names.indexOf(b));
}

/** The beginning of each payload, and how many bytes they have in all. Not `substr` alone: of empty bytes it makes null. */
function cutPayloads(payloads: readonly PayloadName[]): string[] {
  const cut = limits.previewStoredBytes;
  return [
    ...payloads.map(
      (name) => `iif(length(${name}) > ${cut}, substr(${name}, 1, ${cut}), ${name}) as ${name}`,
    ),
    `${lengthOf(payloads)} as stored_bytes`,
  ];
}

/**
 * To read a payload, SQLite walks over those that are stored before it, even if they were left out. What is walked over counts as if it
 * was read.
 */
function walkedOver(stored: readonly PayloadName[], omit: ReadonlySet<PayloadName>): string {
  const walked = stored.flatMap((name, i) => {
    const later = stored.slice(i + 1).filter((other) => !omit.has(other));
    if (!omit.has(name) || later.length === 0) return [];
    const isRead = later.map((other) => `${other} is not null`).join(' or ');
    return [`iif(${isRead}, ${lengthOf([name])}, 0)`];
  });
  return walked.join(' + ') || '0';
}

function lengthOf(payloads: readonly PayloadName[]): string {
  return payloads.map((name) => `coalesce(length(${name}), 0)`).join(' + ') || '0';
}
