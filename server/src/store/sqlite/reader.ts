import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { allTime, dimensions, emptyTally } from '../../core/rollup.ts';
import type { Trace } from '../../core/trace.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { payloadNames } from '../../core/trace.ts';
import type { PayloadName } from '../../core/trace.ts';
import type { PageRequest, TraceReader } from '../store.ts';
import { openAnswerMemo } from './answer-memo.ts';
import type { ReadingClient } from './reading-client.ts';
import {
  prepareTallies,
  shortColumns,
  tallyColumns,
  tallyFromRow,
  traceColumns,
  traceFromRow,
} from './rows.ts';
import { keyOf, seqOfKey, teamOfKey } from './trace-key.ts';

const teamNo = '(select no from teams where id = ?)';

/**
 * Short reads on a connection of their own, so that they neither wait for the writer nor hold it up. Every statement is read to its end
 * before anything else runs: one left open would keep all reads of the connection at its moment, and hide what was acknowledged since.
 */
export function openReader(db: DatabaseSync, reading: ReadingClient): TraceReader {
  const begin = db.prepare('begin');
  const end = db.prepare('commit');
  const readCounter = db.prepare(
    `select team_no, first_seq, last_seq from team_counters where team_no = ${teamNo}`,
  );
  const readTrace = db.prepare(`
    select ${traceColumns} from traces
    where id = ? and ${teamOfKey} = ${teamNo}`);
  const readForward = db.prepare(`
    select ${traceColumns} from traces
    where key between ${keyOf} and ${keyOf} order by key`);
  const readTotal = prepareTallies(
    db,
    `select ${tallyColumns} from rollups
     where team_no = ${teamNo} and dimension = ${dimensions.total} and day = ${allTime} and key = ''`,
  );
  const readDays = prepareTallies(
    db,
    `select day, ${tallyColumns} from rollups
     where team_no = ${teamNo} and dimension = ${dimensions.total} and day between ? and ? and key = ''`,
  );
  const readRange = rangeStatements(db);
  const readGroups = prepareTallies(
    db,
    `select key, ${tallyColumns} from rollups
     where team_no = ${teamNo} and dimension = ? and day = ${allTime}
     order by calls desc, key`,
  );
  const countGroups = db.prepare(`
    select count(*) as count from (
      select 1 from rollups where team_no = ${teamNo} and dimension = ? and day = ${allTime}
      limit ${limits.groupChunkRows + 1})`);

  const memo = openAnswerMemo(db);
  function remembered<T>(question: string, read: () => T): T {
    const known = memo.recall(question) as T | undefined;
    if (known !== undefined) return known;
    const answer = read();
    memo.keep(question, answer);
    return answer;
  }

  /** Traces from `fromSeq` down to `toSeq`, or fewer where their payloads fill a chunk before that. */
  function readChunk(team: TeamPlace, fromSeq: number, toSeq: number, omit: PageRequest['omit']) {
    const traces: Trace[] = [];
    let chars = 0;
    let seq = fromSeq + 1;
    for (const row of readRange(omit).iterate(team.no, toSeq, team.no, fromSeq)) {
      const trace = traceFromRow(row, team.id);
      traces.push(trace);
      seq = row['seq'] as number;
      chars += payloadChars(trace);
      if (chars >= limits.pageChunkBytesMax) break;
    }
    if (traces.length === 0) {
      throw new Failure('store_unavailable', { cause: `traces up to ${fromSeq} are missing` });
    }
    return { traces, nextSeq: seq - 1 };
  }

  /** The counter and the first chunk in one read transaction, so that they agree. */
  function readFirstChunk(teamId: string, { page, limit, omit }: PageRequest) {
    begin.run();
    try {
      const counter = readCounter.get(teamId);
      const team = { id: teamId, no: (counter?.['team_no'] ?? 0) as number };
      const firstSeq = (counter?.['first_seq'] ?? 1) as number;
      const lastSeq = (counter?.['last_seq'] ?? 0) as number;
      const total = lastSeq - firstSeq + 1;
      const fromSeq = lastSeq - (page - 1) * limit;
      const toSeq = Math.max(firstSeq, fromSeq - limit + 1);
      const { traces, nextSeq } = fromSeq < toSeq ? nothing : readChunk(team, fromSeq, toSeq, omit);
      return { total, team, first: traces, nextSeq, toSeq };
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
          const chunk = readChunk(team, seq, toSeq, request.omit);
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
      if (rows.length !== count) {
        throw new Failure('store_unavailable', { cause: `traces from ${firstSeq} are missing` });
      }
      return rows.map((row) => traceFromRow(row, teamId));
    },

    async total(teamId) {
      return remembered(`total ${teamId}`, () => {
        const row = readTotal.get(teamId);
        return row ? tallyFromRow(row, 0) : emptyTally;
      });
    },

    async groups(teamId, name, rowsMax) {
      const dimension = dimensions[name];
      const read = () => {
        const count = countGroups.get(teamId, dimension)?.['count'] as number;
        // To sort a hundred thousand names takes too long for the thread that serves everything else.
        if (count > limits.groupChunkRows) return null;
        const rows = readGroups.all(teamId, dimension);
        return rows.map((row) => ({ key: row[0] as string, tally: tallyFromRow(row, 1) }));
      };
      const groups = remembered(`${name} ${teamId}`, read);
      if (groups !== null) return { first: groups.slice(0, rowsMax ?? undefined), rest: null };
      if (rowsMax === null) return reading.allGroups(teamId, dimension);
      return { first: await reading.topGroups(teamId, dimension, rowsMax), rest: null };
    },

    async days(teamId, { firstDay, lastDay }) {
      return remembered(`days ${firstDay} ${lastDay} ${teamId}`, () =>
        readDays
          .all(teamId, firstDay, lastDay)
          .map((row) => ({ day: Number(row[0]), tally: tallyFromRow(row, 1) })),
      );
    },
  };
}

interface TeamPlace {
  id: string;
  no: number;
}

/** An empty page: there is nothing before it and nothing after it. */
const nothing = { traces: [], nextSeq: -1 };

/** One statement for each set of omitted payloads: what is not asked for is not read from the disk. */
function rangeStatements(db: DatabaseSync): (omit: ReadonlySet<PayloadName>) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return (omit) => {
    const payloads = payloadNames.filter((name) => !omit.has(name));
    const columns = [`${seqOfKey} as seq`, shortColumns, ...payloads].join(', ');
    let statement = prepared.get(columns);
    if (!statement) {
      statement = db.prepare(`
        select ${columns} from traces where key between ${keyOf} and ${keyOf} order by key desc`);
      prepared.set(columns, statement);
    }
    return statement;
  };
}

function payloadChars({ input, output, errorMessage }: Trace): number {
  return (input?.length ?? 0) + (output?.length ?? 0) + (errorMessage?.length ?? 0);
}
