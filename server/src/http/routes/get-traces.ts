import type { PayloadName } from '../../core/trace-fields.ts';
import type { Trace } from '../../core/trace.ts';
import { limits } from '../../limits.ts';
import { callerOf, requireKey } from '../auth.ts';
import { isGone } from '../reply-budget.ts';
import type { Route } from '../route.ts';
import { PageQuery, omittedPayloads } from '../parameters.ts';
import { readFailures, replies } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';

/** `GET /traces`: the last page is as fast as the first. */
export const getTraces: Route = (app, { reader, gate, replyBudget }) => {
  app.get(
    '/traces',
    {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: {
        operationId: 'listTraces',
        summary: "List the team's traces, newest first",
        tags: ['traces'],
        querystring: PageQuery,
        response: { 200: replies.tracePage, ...readFailures },
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
      const { total, first, rest } = await reader.page(
        teamId,
        { page, limit, omit, previewChars },
        () => !isGone(reply),
      );
      const head = `{"traces":[${first.map((trace) => traceJson(trace, omit)).join(',')}`;
      const tail = `],"total":${total},"page":${page},"limit":${limit}}`;
      return replyBudget.sendPieces(request, reply, head, rest && piecesOf(rest, omit), tail);
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
