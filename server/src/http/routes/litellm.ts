import { limits } from '../../limits.ts';
import { bearerOrApiKey, callerOf, requireKey } from '../auth.ts';
import type { DecodedBody } from '../decoding/decoded-body.ts';
import { LitellmBody, litellmReply } from '../otlp-schemas.ts';
import type { Route } from '../route.ts';
import { writeFailures } from '../schemas.ts';
import { storeCalls } from '../store-calls.ts';

/** `POST /ingest/litellm`: the calls that a LiteLLM proxy logs. A 200 means that they are on disk, readable and counted. */
export const litellm: Route = (app, { gate, writes, signalLog, bodyBytesMax }) => {
  app.post(
    '/ingest/litellm',
    {
      bodyLimit: Math.max(limits.batchBodyBytesMax, bodyBytesMax),
      config: { takes: 'litellm' },
      onRequest: requireKey(gate, 'ingest', bearerOrApiKey),
      schema: {
        operationId: 'logLitellmCalls',
        summary: 'Record the calls of a LiteLLM proxy',
        tags: ['opentelemetry'],
        body: LitellmBody,
        response: { 200: litellmReply, ...writeFailures },
      },
    },
    async (request) => {
      const body = request.body as DecodedBody;
      const counts = await storeCalls(body, callerOf(request).teamId, writes);
      signalLog.add(request.id, counts);
      const reasons = body.signals.reasons.map(([reason]) => reason);
      return { ...counts, reasons: reasons.slice(0, limits.otlpReasonsMax) };
    },
  );
};
