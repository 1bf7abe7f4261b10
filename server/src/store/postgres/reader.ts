import { FairQueue } from '../../core/fair-queue.ts';
import type { SearchCriteria } from '../../core/query.ts';
import type { Trace } from '../../core/trace.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { chunkWork, pageRange, tracesMissing } from '../page-range.ts';
import type { TeamCounter } from '../sequencer.ts';
import { countedFromRow, traceFromRow } from '../trace-rows.ts';
import type { TraceLookups } from '../trace-lookups.ts';
import type { ListRequest, PageRequest, TraceChunks, TraceReader } from '../trace-reader.ts';
import { everyTrace, inOrderOfCalls, searchTraces } from '../trace-search.ts';
import type { SearchDriver } from '../trace-search.ts';
import { ask as askPool } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { counterFromRow } from './marks-rows.ts';
import { searchDriver } from './search-driver.ts';
import {
  listStatement,
  lookUpStatements,
  ofOneTeam,
  readChosenStatements,
  readDownStatements,
} from './statements.ts';
import { openTallyReader } from './tally-reader.ts';
import type { QueryStatement } from './tally-statements.ts';

export function openReader(pools: Pools): TraceReader & TraceLookups {
  const { reading } = pools;
  // Teams take turns, so that one team's flood of reads does not delay the others.
  const turns = new FairQueue(
    {
      runningMax: limits.postgresTeamReadsMax,
      teamRunningMax: limits.postgresOneTeamReadsMax,
      teamWaitingMax: limits.postgresReadsWaitingMax,
    },
    () => new Failure('reads_busy', { say: 'Too many reads from this team are waiting.' }),
  );

  /** The first parameter of every statement is the team. */
  function ask(
    text: string,
    values: readonly [teamId: string, ...Values],
    isWanted?: () => boolean,
  ): Promise<Row[]> {
    return turns.run(values[0], () => askPool(reading, text, values), isWanted);
  }

  /**
   * Traces from `fromSeq` down to `toSeq` in chunks. The database returns rows until their stored payloads fill a chunk. Decompressed
   * they may be much larger, so they are decompressed and yielded in chunks of the same size as in every store.
   */
  async function* walkDown(
    teamId: string,
    fromSeq: number,
    toSeq: number,
    request: PageRequest,
    isWanted?: () => boolean,
  ): AsyncGenerator<Chunk> {
    const statement = listStatement(readDownStatements, request);
    let traces: Trace[] = [];
    let chars = 0;
    for (let seq = fromSeq; seq >= toSeq;) {
      const rows = await ask(statement, [teamId, toSeq, seq], isWanted);
      const lastSeq = Number(rows.at(-1)?.['seq'] ?? -1);
      // The sequence has no gaps, so the sequence numbers show whether a row is missing.
      if (lastSeq < toSeq || lastSeq !== seq - rows.length + 1) {
        throw tracesMissing(`up to ${seq}`);
      }
      for (const row of rows) {
        const trace = traceFromRow(row, teamId, request.previewChars);
        traces.push(trace);
        chars += chunkWork(row, trace, request);
        seq -= 1;
        if (chars < limits.pageChunkBytesMax && seq >= toSeq) continue;
        yield { traces, isLast: seq < toSeq };
        traces = [];
        chars = 0;
      }
    }
  }

  /** Traces in the given order, in chunks as above. */
  async function* walkChosen(
    teamId: string,
    seqs: readonly number[],
    request: ListRequest,
    isWanted?: () => boolean,
  ): AsyncGenerator<Chunk> {
    const statement = listStatement(readChosenStatements, request);
    let traces: Trace[] = [];
    let chars = 0;
    for (let at = 0; at < seqs.length;) {
      const rows = await ask(statement, [teamId, seqs.slice(at)], isWanted);
      if (rows.length === 0) throw tracesMissing(`with number ${seqs[at]}`);
      for (const row of rows) {
        const trace = traceFromRow(row, teamId, request.previewChars);
        traces.push(trace);
        chars += chunkWork(row, trace, request);
        at += 1;
        if (chars < limits.pageChunkBytesMax && at < seqs.length) continue;
        yield { traces, isLast: at === seqs.length };
        traces = [];
        chars = 0;
      }
    }
  }

  async function chunksOf(walk: AsyncGenerator<Chunk>): Promise<TraceChunks> {
    const head = await walk.next();
    if (head.done) return { first: [], rest: null };
    const { traces: first, isLast } = head.value;
    return { first, rest: isLast ? null : tracesOf(walk) };
  }

  const searches = new FairQueue(
    {
      runningMax: limits.searchesMax,
      teamRunningMax: 1,
      teamWaitingMax: limits.searchesWaitingMax,
    },
    () => new Failure('reads_busy', { say: 'Too many searches of this team are waiting.' }),
  );

  async function counter(teamId: string, isWanted?: () => boolean): Promise<TeamCounter> {
    const [row] = await ask(ofOneTeam.readCounter, [teamId], isWanted);
    return counterFromRow(row);
  }

  const lookUp: TraceLookups['lookUp'] = async (teamId, field, value, beforeSeq = Infinity) => {
    const { firstSeq, lastSeq } = await counter(teamId);
    const toSeq = Math.min(lastSeq, beforeSeq - 1);
    const rows = await ask(lookUpStatements[field], [teamId, value, firstSeq, toSeq]);
    return rows.map(({ seq }) => Number(seq));
  };

  function driverOf(teamId: string, criteria: SearchCriteria): SearchDriver {
    const askOnce = ({ text, values, isPrepared }: QueryStatement): Promise<Row[]> =>
      turns.run(teamId, () => askPool(reading, text, values, undefined, isPrepared));
    return searchDriver({ counter, lookUp, ask: askOnce }, teamId, criteria);
  }

  return {
    async page(teamId, request, isWanted) {
      // Traces never change, and the counter is read first, so all traces that it counts exist.
      const { total, fromSeq, toSeq } = pageRange(await counter(teamId, isWanted), request);
      return { total, ...(await chunksOf(walkDown(teamId, fromSeq, toSeq, request, isWanted))) };
    },

    async search(teamId, request, isWanted) {
      const { criteria, beforeSeq, limit: rowsMax } = request;
      const bounds = { beforeSeq, rowsMax, msMax: limits.searchMsMax };
      const search = () => searchTraces(driverOf(teamId, criteria), criteria, bounds);
      const { seqs, next } = await searches.run(teamId, search, isWanted);
      return { ...(await chunksOf(walkChosen(teamId, seqs, request, isWanted))), next };
    },

    async ordered(teamId, request, isWanted) {
      const { field, value, after, limit: rowsMax } = request;
      const search = () =>
        inOrderOfCalls(driverOf(teamId, everyTrace), { field, value, after, rowsMax });
      const { seqs, next } = await searches.run(teamId, search, isWanted);
      return { ...(await chunksOf(walkChosen(teamId, seqs, request, isWanted))), next };
    },

    async trace(teamId, id, isWanted) {
      const [row] = await ask(ofOneTeam.readTrace, [teamId, id], isWanted);
      return row ? traceFromRow(row, teamId) : null;
    },

    async narrow(teamId, id, isWanted) {
      const [row] = await ask(ofOneTeam.readNarrow, [teamId, id], isWanted);
      return row ? countedFromRow(row) : null;
    },

    async range(teamId, { firstSeq, count }) {
      const rows = await ask(ofOneTeam.readForward, [teamId, firstSeq, firstSeq + count - 1]);
      if (rows.length !== count) throw tracesMissing(`from ${firstSeq}`);
      return rows.map((row) => traceFromRow(row, teamId));
    },

    lookUp,

    ...openTallyReader(pools, turns),
  };
}

interface Chunk {
  traces: Trace[];
  isLast: boolean;
}

async function* tracesOf(walk: AsyncIterable<Chunk>): AsyncGenerator<readonly Trace[]> {
  for await (const { traces } of walk) yield traces;
}
