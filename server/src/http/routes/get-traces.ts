import { Readable } from 'node:stream';
import type { Trace } from '../../core/trace.ts';
import { limits } from '../../limits.ts';
import type { Payload } from '../../store/payload.ts';
import { callerOf, requireKey } from '../auth.ts';
import { omittedPayloads } from '../omit.ts';
import { jsonContentType } from '../record-json.ts';
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
      const omit = omittedPayloads(request.query.omit);
      const { total, first, rest } = await store.page(teamId, { page, limit, omit });
      const tail = `],"total":${total},"page":${page},"limit":${limit}}`;
      const pieces = first.map((trace) => JSON.stringify(listedTraceJson(trace, omit)));
      reply.type(jsonContentType);
      if (rest === null) return reply.send(`{"traces":[${pieces.join(',')}${tail}`);
      // Nobody reads the body of a HEAD, so nothing of it is made.
      const body = request.method === 'HEAD' ? [] : streamedPage(pieces, rest, omit, tail);
      return reply.send(Readable.from(body));
    },
  );
};

/** A page too large to be one text, a trace at a time and in slices, so that little of it waits for the socket. */
async function* streamedPage(
  first: readonly string[],
  rest: AsyncIterable<readonly Trace[]>,
  omit: ReadonlySet<Payload>,
  tail: string,
): AsyncGenerator<string> {
  yield '{"traces":[';
  yield* slicesOf(first.join(','));
  for await (const traces of rest) {
    for (const trace of traces) {
      yield ',';
      yield* slicesOf(JSON.stringify(listedTraceJson(trace, omit)));
    }
  }
  yield tail;
}

function* slicesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    let end = at + limits.streamSliceChars;
    // A surrogate pair must stay together: each half alone could not be written as UTF-8.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    yield text.slice(at, end);
    at = end;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
