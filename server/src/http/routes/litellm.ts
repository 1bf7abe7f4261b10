import { limits } from '../../limits.ts';
import { bearerOrApiKey, callerOf, requireKey } from '../auth.ts';
import { checkedText } from '../body-parser.ts';
import { LitellmBody, litellmReply } from '../otlp-schemas.ts';
import { readLitellm } from '../protocols/litellm.ts';
import type { Route } from '../route.ts';
import { writeFailures } from '../schemas.ts';
import { storeCalls } from '../store-calls.ts';

/** `POST /ingest/litellm`: the calls that a LiteLLM proxy logs. A 200 means that they are on disk, readable and counted. */
export const litellm: Route = (app, { gate, writes, pricing, clock, signalLog, bodyBytesMax }) => {
  app.post(
    '/ingest/litellm',
    {
      bodyLimit: Math.max(limits.batchBodyBytesMax, bodyBytesMax),
      config: { takesText: true },
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
      const { teamId } = callerOf(request);
      const signals = readLitellm(checkedText(request.body as Buffer));
      const { reasons, ...counts } = await storeCalls(signals, { teamId, writes, pricing, clock });
      signalLog.add(request.id, counts);
      return { ...counts, reasons: [...reasons.keys()].slice(0, limits.otlpReasonsMax) };
    },
  );
};
