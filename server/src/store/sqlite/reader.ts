import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { allTime, dimensions, emptyTally } from '../../core/rollup.ts';
import type { Trace } from '../../core/trace.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import type { PageRequest, Payload, TraceReader } from '../store.ts';
import { tallyColumns, tallyFromRow, traceColumns, traceFromRow } from './rows.ts';

const teamNo = '(select no from teams where id = ?)';

/** Reads on a connection of their own, so that they neither wait for the writer nor hold it up. */
export function openReader(db: DatabaseSync): TraceReader {
  const begin = db.prepare('begin');
  const end = db.prepare('commit');
  const readCounter = db.prepare(
    `select team_no, first_seq, last_seq from team_counters where team_no = ${teamNo}`,
  );
  const readTrace = db.prepare(`
    select ${traceColumns}, input, output from traces
    where id = ? and key >> 40 = ${teamNo}`);
  const readTotal = withBigInts(
    db.prepare(`
    select ${tallyColumns} from rollups
    where team_no = ${teamNo} and dimension = ${dimensions.total} and day = ${allTime} and key = ''`),
  );
  const readGroups = withBigInts(
    db.prepare(`
    select key, ${tallyColumns} from rollups
    where team_no = ${teamNo} and dimension = ? and day = ${allTime}
    order by calls desc, key`),
  );
  const readDays = withBigInts(
    db.prepare(`
    select day, ${tallyColumns} from rollups
    where team_no = ${teamNo} and dimension = ${dimensions.total} and day between ? and ? and key = ''`),
  );

  const readRange = rangeStatements(db);

  /** Traces `fromSeq` down to `toSeq`, or fewer where their payloads fill a chunk before that. */
  function readChunk(
    teamId: string,
    no: number,
    fromSeq: number,
    toSeq: number,
    omit: ReadonlySet<Payload>,
  ): Trace[] {
    const traces: Trace[] = [];
    let chars = 0;
    for (const row of readRange(omit).iterate(no, toSeq, no, fromSeq)) {
      const trace = traceFromRow(row, teamId);
      traces.push(trace);
      chars += payloadChars(trace);
      if (chars >= limits.pageChunkBytesMax) break;
    }
    return traces;
  }

  /** The counter and the first chunk in one read transaction, so that they agree. */
  function readFirstChunk(teamId: string, { page, limit, omit }: PageRequest) {
    begin.run();
    try {
      const counter = readCounter.get(teamId);
      if (!counter) return { total: 0, no: 0, fromSeq: 0, toSeq: 1, first: [] };
      const no = counter['team_no'] as number;
      const firstSeq = counter['first_seq'] as number;
      const lastSeq = counter['last_seq'] as number;
      const fromSeq = lastSeq - (page - 1) * limit;
      const toSeq = Math.max(firstSeq, fromSeq - limit + 1);
      const first = fromSeq < toSeq ? [] : readChunk(teamId, no, fromSeq, toSeq, omit);
      return { total: lastSeq - firstSeq + 1, no, fromSeq: fromSeq - first.length, toSeq, first };
    } finally {
      end.run();
    }
  }

  return {
    async page(teamId, request) {
      const { total, no, fromSeq, toSeq, first } = readFirstChunk(teamId, request);
      // Traces never change, so the later chunks need no transaction, and a slow reader holds nothing open.
      async function* rest() {
        for (let seq = fromSeq; seq >= toSeq;) {
          const chunk = readChunk(teamId, no, seq, toSeq, request.omit);
          seq -= chunk.length;
          yield chunk;
        }
      }
      return { total, first, rest: fromSeq < toSeq ? null : rest() };
    },

    async trace(teamId, id) {
      const row = readTrace.get(uuidBytes(id), teamId);
      return row ? traceFromRow(row, teamId) : null;
    },

    async total(teamId) {
      const row = readTotal.get(teamId);
      return row ? tallyFromRow(row) : emptyTally;
    },

    async groups(teamId, dimension) {
      return readGroups
        .all(teamId, dimensions[dimension])
        .map((row) => ({ key: row['key'] as string, tally: tallyFromRow(row) }));
    },

    async days(teamId, { firstDay, lastDay }) {
      return readDays
        .all(teamId, firstDay, lastDay)
        .map((row) => ({ day: Number(row['day']), tally: tallyFromRow(row) }));
    },
  };
}

/** One statement for each set of omitted payloads: what is not asked for is not read from the disk. */
function rangeStatements(db: DatabaseSync): (omit: ReadonlySet<Payload>) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return (omit) => {
    const payloads = (['input', 'output'] as const).filter((name) => !omit.has(name));
    const columns = [traceColumns, ...payloads].join(', ');
    let statement = prepared.get(columns);
    if (!statement) {
      statement = db.prepare(`
        select ${columns} from traces
        where key between (? << 40) | ? and (? << 40) | ? order by key desc`);
      prepared.set(columns, statement);
    }
    return statement;
  };
}

function payloadChars({ input, output, errorMessage }: Trace): number {
  return (input?.length ?? 0) + (output?.length ?? 0) + (errorMessage?.length ?? 0);
}

function withBigInts(statement: StatementSync): StatementSync {
  statement.setReadBigInts(true);
  return statement;
}
