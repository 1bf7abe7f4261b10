import { limits } from '../../limits.ts';
import { callerOf, requireKey } from '../auth.ts';
import type { DecodedBody } from '../decoding/decoded-body.ts';
import { idempotentRequest, tracesToShow } from '../idempotency.ts';
import type { Route } from '../route.ts';
import { IdempotencyHeaders, omittedPayloads, PostBatchQuery } from '../parameters.ts';
import { replies, writeFailures } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';
import { BatchBody } from '../trace-schemas.ts';

/** `POST /traces/batch`: stores the valid traces in one commit. Invalid ones are reported by index and do not affect the others. */
export const postTraceBatch: Route = (app, { reader, writes, gate, replyBudget, bodyBytesMax }) => {
  app.post(
    '/traces/batch',
    {
      bodyLimit: Math.max(limits.batchBodyBytesMax, bodyBytesMax),
      config: { takes: 'batch' },
      onRequest: requireKey(gate, 'ingest'),
      schema: {
        operationId: 'createTraces',
        summary: 'Record up to 1,000 traces in one request',
        tags: ['traces'],
        headers: IdempotencyHeaders,
        querystring: PostBatchQuery,
        body: BatchBody,
        response: { 201: replies.batch, ...writeFailures },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const body = request.body as unknown as DecodedBody;
      const { drafts, payloads } = await body.traces();
      const idempotent = idempotentRequest(request, body.rejected);
      const appended = await writes.append(teamId, drafts, idempotent, { payloads });
      const traces = await tracesToShow(reader, teamId, appended, reply);
      reply.code(201);
      if (appended.kind === 'recorded') {
        const pieces = body
          .shown(traces)
          .flatMap((piece, i) => (i === 0 ? [piece] : [comma, piece]));
        const end = Buffer.from(`],"rejected":${body.rejected}}`);
        return replyBudget.sendStored(reply, [start, ...pieces, end]);
      }
      const omit = omittedPayloads(request.query.omit);
      const shown = traces.map((trace) => traceJson(trace, omit)).join(',');
      const text = `{"traces":[${shown}],"rejected":${appended.rejected ?? '[]'}}`;
      return replyBudget.sendStored(reply, text);
    },
  );
};

const start = Buffer.from('{"traces":[');
const comma = Buffer.from(',');
