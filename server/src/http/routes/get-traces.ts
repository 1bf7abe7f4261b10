import type { FastifyReply } from 'fastify';
import type { SentParameters } from '../../core/question.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import type { Trace } from '../../core/trace.ts';
import { limits } from '../../limits.ts';
import type { TraceChunks } from '../../store/trace-reader.ts';
import { callerOf, requireKey } from '../auth.ts';
import { isGone } from '../reply-budget.ts';
import type { Route } from '../route.ts';
import { PageQuery, omittedPayloads } from '../parameters.ts';
import { readFailures, replies } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';
import { isFiltered, readTraceList } from '../trace-list.ts';

/** `GET /traces`: the last page is as fast as the first. With a filter, pages follow each other by cursor. */
export const getTraces: Route = (app, { reader, gate, clock, cursors, replyBudget }) => {
  app.get(
    '/traces',
    {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: {
        operationId: 'listTraces',
        summary: "List the team's traces, newest first, or those that match",
        tags: ['traces'],
        querystring: PageQuery,
        response: { 200: replies.traces, ...readFailures },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const page = Number(request.query.page ?? 1);
      const limit = Math.min(
        Number(request.query.limit ?? limits.pageRowsDefault),
        limits.pageRowsMax,
      );
      const omit = omittedPayloads(request.query.omit);
      const { preview_chars: preview } = request.query;
      const previewChars = preview === undefined ? null : Number(preview);
      const shown = { limit, omit, previewChars };
      const isWanted = (): boolean => !isGone(reply);
      const send = ({ first, rest }: TraceChunks, ending: string): FastifyReply => {
        const head = `{"traces":[${first.map((trace) => traceJson(trace, omit)).join(',')}`;
        return replyBudget.sendPieces(request, reply, head, rest && piecesOf(rest, omit), ending);
      };
      const sent = request.query as SentParameters;
      if (isFiltered(sent)) {
        const question = { teamId, sent, shown, nowUs: clock(), isWanted };
        const list = await readTraceList(reader, cursors, question);
        const [next, searched] = [list.nextCursor, list.searchedTo].map((v) => JSON.stringify(v));
        return send(list, `],"limit":${limit},"next_cursor":${next},"searched_to":${searched}}`);
      }
      const found = await reader.page(teamId, { page, ...shown }, isWanted);
      return send(found, `],"total":${found.total},"page":${page},"limit":${limit}}`);
    },
  );
};

/** The rest of a page that is too large to be sent at once, one trace at a time. */
async function* piecesOf(
  rest: AsyncIterable<readonly Trace[]>,
  omit: ReadonlySet<PayloadName>,
): AsyncGenerator<string> {
  for await (const traces of rest) {
    for (const trace of traces) yield `,${traceJson(trace, omit)}`;
  }
}
