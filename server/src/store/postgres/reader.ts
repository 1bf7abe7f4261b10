import { FairQueue } from '../../core/fair-queue.ts';
import type { Trace } from '../../core/trace.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { chunkWork, pageRange, tracesMissing } from '../page-range.ts';
import { traceFromRow } from '../trace-rows.ts';
import type { TraceLookups } from '../trace-lookups.ts';
import type { PageRequest, TraceReader } from '../trace-reader.ts';
import { ask as askPool } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { counterFromRow } from './marks-rows.ts';
import { lookUpStatements, ofOneTeam, readDown } from './statements.ts';
import { openTallyReader } from './tally-reader.ts';

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
    let traces: Trace[] = [];
    let chars = 0;
    for (let seq = fromSeq; seq >= toSeq;) {
      const rows = await ask(readDown(request), [teamId, toSeq, seq], isWanted);
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

  return {
    async page(teamId, request, isWanted) {
      // Traces never change, and the counter is read first, so all traces that it counts exist.
      const [row] = await ask(ofOneTeam.readCounter, [teamId], isWanted);
      const { total, fromSeq, toSeq } = pageRange(counterFromRow(row), request);
      const walk = walkDown(teamId, fromSeq, toSeq, request, isWanted);
      const head = await walk.next();
      if (head.done) return { total, first: [], rest: null };
      const { traces: first, isLast } = head.value;
      return { total, first, rest: isLast ? null : tracesOf(walk) };
    },

    async trace(teamId, id, isWanted) {
      const [row] = await ask(ofOneTeam.readTrace, [teamId, id], isWanted);
      return row ? traceFromRow(row, teamId) : null;
    },

    async range(teamId, { firstSeq, count }) {
      const rows = await ask(ofOneTeam.readForward, [teamId, firstSeq, firstSeq + count - 1]);
      if (rows.length !== count) throw tracesMissing(`from ${firstSeq}`);
      return rows.map((row) => traceFromRow(row, teamId));
    },

    async lookUp(teamId, field, value, beforeSeq = Infinity) {
      const [row] = await ask(ofOneTeam.readCounter, [teamId]);
      const { firstSeq, lastSeq } = counterFromRow(row);
      const toSeq = Math.min(lastSeq, beforeSeq - 1);
      const rows = await ask(lookUpStatements[field], [teamId, value, firstSeq, toSeq]);
      return rows.map(({ seq }) => Number(seq));
    },

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
