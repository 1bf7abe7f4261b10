import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { columnOf, extraNames, payloadNames } from '../../core/trace-fields.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import type { Trace } from '../../core/trace.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import { chunkWork, pageRange, tracesMissing } from '../page-range.ts';
import { emptyCounter } from '../sequencer.ts';
import { shortColumns, traceColumns, traceFromRow } from '../trace-rows.ts';
import type { PageRequest, TraceReader } from '../trace-reader.ts';
import { rowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';

const teamNo = '(select no from teams where id = ?)';

interface TeamNumber {
  id: string;
  no: number;
}

/**
 * Reads traces on a connection of its own, so that reads neither wait for the writer nor delay it. Every statement is read to its end
 * before anything else runs: an open one would keep all reads of the connection at its snapshot, and hide acknowledged traces.
 */
export function openTracePages(db: DatabaseSync): Pick<TraceReader, 'page' | 'trace' | 'range'> {
  const begin = db.prepare('begin');
  const end = db.prepare('commit');
  const readCounter = db.prepare(
    `select team_no, first_seq, last_seq from team_counters where team_no = ${teamNo}`,
  );
  const readTrace = db.prepare(`
    select ${traceColumns} from traces where id = ? and ${teamOfRowId} = ${teamNo}`);
  const readForward = db.prepare(`
    select ${traceColumns} from traces where key between ${rowIdOf} and ${rowIdOf} order by key`);
  const readDown = downStatements(db);

  /** Traces from `fromSeq` down to `toSeq`, or fewer if their payloads fill a chunk before that. */
  function readChunk(team: TeamNumber, fromSeq: number, toSeq: number, request: PageRequest) {
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

  /** The counter and the first chunk in one read transaction, so that they agree. */
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
      // Traces never change, so the later chunks need no transaction, and a slow reader holds nothing open.
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
    async trace(teamId, id) {
      const row = readTrace.get(uuidBytes(id), teamId);
      return row ? traceFromRow(row, teamId) : null;
    },
    async range(teamId, { firstSeq, count }) {
      const no = readCounter.get(teamId)?.['team_no'] as number | undefined;
      const rows = no === undefined ? [] : readForward.all(no, firstSeq, no, firstSeq + count - 1);
      if (rows.length !== count) throw tracesMissing(`from ${firstSeq}`);
      return rows.map((row) => traceFromRow(row, teamId));
    },
  };
}

/** Nothing before it and nothing after it. */
const emptyPage = { traces: [], nextSeq: -1 };

/** One statement for each set of payloads, whole or cut: what is not asked for is not read from the disk. */
function downStatements(db: DatabaseSync): (request: PageRequest) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return ({ omit, previewChars = null }) => {
    const payloads = payloadNames.filter((name) => !omit.has(name));
    const read = previewChars === null ? payloads : cutPayloads(payloads);
    const skipped = skippedBytes(payloadNames.filter((name) => omit.has(name)));
    const columns = [`${seqOfRowId} as seq`, shortColumns, ...read, skipped].join(', ');
    let statement = prepared.get(columns);
    if (!statement) {
      statement = db.prepare(`
        select ${columns} from traces where key between ${rowIdOf} and ${rowIdOf} order by key desc`);
      prepared.set(columns, statement);
    }
    return statement;
  };
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
 * Columns that came later are stored behind the payloads, so that SQLite walks over all of a payload to read one of them, even if
 * the payload was left out. What is walked over counts as if it was read.
 */
function skippedBytes(omitted: readonly PayloadName[]): string {
  const later = ['null', 'null', ...[...extraNames].map(columnOf)].join(', ');
  return `iif(coalesce(${later}) is null, 0, ${lengthOf(omitted)}) as skipped_bytes`;
}

function lengthOf(payloads: readonly PayloadName[]): string {
  return payloads.map((name) => `coalesce(length(${name}), 0)`).join(' + ') || '0';
}
