import { limits } from '../../limits.ts';
import { callerOf, requireKey } from '../auth.ts';
import type { DecodedBody } from '../decoding/decoded-body.ts';
import { idempotentRequest, tracesToShow } from '../idempotency.ts';
import type { Route } from '../route.ts';
import { IdempotencyHeaders, OmitQuery, omittedPayloads } from '../parameters.ts';
import { replies, writeFailures } from '../schemas.ts';
import { storedJson, traceJson } from '../trace-json.ts';
import { BatchBody } from '../trace-schemas.ts';

/** `POST /traces/batch`: stores the valid traces in one commit. Invalid ones are reported by index and do not affect the others. */
export const postTraceBatch: Route = (
  app,
  { reader, writes, gate, bodyBudget, replyBudget, bodyBytesMax },
) => {
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
        querystring: OmitQuery,
        body: BatchBody,
        response: { 201: replies.batch, ...writeFailures },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const body = request.body as unknown as DecodedBody;
      const { drafts, payloads, shown } = await body.traces();
      // The reply repeats each trace, with additional fields, and is in memory until the peer has read it.
      bodyBudget.add(request, drafts.length * limits.storedFieldsBytesMax);
      const idempotent = idempotentRequest(request, body.rejected);
      const appended = await writes.append(teamId, drafts, idempotent, { payloads });
      const traces = await tracesToShow(reader, teamId, appended, reply);
      const isReplay = appended.kind === 'replayed';
      const omit = omittedPayloads(request.query.omit);
      const pieces = traces.map((trace, i) =>
        isReplay ? traceJson(trace, omit) : storedJson(trace, shown[i] as string),
      );
      const rejected = isReplay ? (appended.rejected ?? '[]') : body.rejected;
      const text = `{"traces":[${pieces.join(',')}],"rejected":${rejected}}`;
      return replyBudget.sendStored(reply.code(201), text);
    },
  );
};
