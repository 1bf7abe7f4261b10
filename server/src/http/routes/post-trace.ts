import { draftTrace } from '../../core/trace.ts';
import type { Trace } from '../../core/trace.ts';
import { callerOf, requireKey } from '../auth.ts';
import { idempotentRequest, tracesToShow } from '../idempotency.ts';
import type { Route } from '../route.ts';
import { IdempotencyHeaders } from '../parameters.ts';
import { TraceBody, replies, writeFailures } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';

/** `POST /traces`: a 201 means that the trace is on disk, readable and counted. */
export const postTrace: Route = (
  app,
  { reader, writes, pricing, priceMissingCosts, gate, replyBudget, basePath },
) => {
  app.post(
    '/traces',
    {
      onRequest: requireKey(gate, 'ingest'),
      schema: {
        operationId: 'createTrace',
        summary: 'Record one trace',
        tags: ['traces'],
        headers: IdempotencyHeaders,
        body: TraceBody,
        response: { 201: replies.trace, ...writeFailures },
      },
    },
    // Not async: Fastify would await the reply, which takes several more promises for each request.
    (request, reply) => {
      const { teamId } = callerOf(request);
      const draft = draftTrace(request.body);
      const append = () => writes.append(teamId, [draft], idempotentRequest(request));
      const show = ([trace]: readonly Trace[]): void => {
        if (!trace) throw new Error('the store returned no trace');
        reply.code(201).header('location', `${basePath}/traces/${trace.id}`);
        replyBudget.sendStored(reply, traceJson(trace));
      };
      const priced = priceMissingCosts ? pricing.price(teamId, [draft]) : null;
      const appended = priced ? priced.then(append) : append();
      appended
        .then((stored) => {
          const traces = tracesToShow(reader, teamId, stored, reply);
          return traces instanceof Promise ? traces.then(show) : show(traces);
        })
        .catch((error: unknown) => reply.send(error));
    },
  );
};
