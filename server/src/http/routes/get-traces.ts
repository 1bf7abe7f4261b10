import { Readable } from 'node:stream';
import { limits } from '../../limits.ts';
import type { Payload, TracePage } from '../../store/store.ts';
import { callerOf, requireKey } from '../auth.ts';
import type { Route } from '../route.ts';
import { PageQuery, refusals, replies } from '../schemas.ts';
import { listedTraceJson } from '../trace-json.ts';

/** `GET /traces`: the last page is as fast as the first. */
export const getTraces: Route = (app, { store, gate }) => {
  app.get(
    '/traces',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'listTraces',
        summary: "List the team's traces, newest first",
        tags: ['traces'],
        querystring: PageQuery,
        response: {
          200: replies.tracePage,
          ...refusals.key,
          ...refusals.invalid,
          ...refusals.tooMany,
          ...refusals.unavailable,
        },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const page = Number(request.query.page ?? 1);
      const limit = Math.min(
        Number(request.query.limit ?? limits.pageRowsDefault),
        limits.pageRowsMax,
      );
      const omit = new Set((request.query.omit?.split(',') ?? []) as Payload[]);
      const { total, chunks } = await store.page(teamId, { page, limit, omit });
      const json = pageJson(chunks, omit, `"total":${total},"page":${page},"limit":${limit}`);
      const first = await json.next();
      const second = await json.next();
      reply.type('application/json; charset=utf-8');
      // A page is nearly always one piece, and then it goes out whole, with its length.
      if (second.done) return reply.send(first.value);
      return reply.send(Readable.from(followedBy([first.value, second.value], json)));
    },
  );
};

/** The page as pieces of JSON, a chunk of traces each, so that a page of any size needs little memory. */
async function* pageJson(
  chunks: TracePage['chunks'],
  omit: ReadonlySet<Payload>,
  rest: string,
): AsyncGenerator<string> {
  let piece = '{"traces":[';
  let isFirst = true;
  for await (const traces of chunks) {
    if (!isFirst) {
      yield piece;
      piece = ',';
    }
    isFirst = false;
    piece += traces.map((trace) => JSON.stringify(listedTraceJson(trace, omit))).join(',');
  }
  yield `${piece}],${rest}}`;
}

async function* followedBy<T>(head: readonly T[], tail: AsyncIterable<T>): AsyncGenerator<T> {
  yield* head;
  yield* tail;
}
