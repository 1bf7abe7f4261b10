import type { FastifyReply, FastifyRequest } from 'fastify';
import { draftTrace } from '../../core/trace.ts';
import type { Trace } from '../../core/trace.ts';
import { callerOf, requireKey } from '../auth.ts';
import { DecodedBody } from '../decoding/decoded-body.ts';
import { idempotentRequest, tracesToShow } from '../idempotency.ts';
import type { Route } from '../route.ts';
import { asksForCosts, IdempotencyHeaders, PostTraceQuery } from '../parameters.ts';
import { replies, writeFailures } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';
import { TraceBody } from '../trace-schemas.ts';

/** `POST /traces`: a 201 means that the trace is on disk, readable and counted. */
export const postTrace: Route = (
  app,
  { reader, writes, pricing, priceMissingCosts, gate, replyBudget, basePath },
) => {
  app.post(
    '/traces',
    {
      config: { takes: 'trace' },
      onRequest: requireKey(gate, 'ingest'),
      schema: {
        operationId: 'createTrace',
        summary: 'Record one trace',
        tags: ['traces'],
        headers: IdempotencyHeaders,
        querystring: PostTraceQuery,
        body: TraceBody,
        response: { 201: replies.trace, ...writeFailures },
      },
    },
    // Not async: Fastify would await the reply, which takes several more promises for each request.
    (request, reply) => {
      if ((request.body as unknown) instanceof DecodedBody) {
        storeDecoded(request, reply).catch((error: unknown) => reply.send(error));
        return;
      }
      const { teamId } = callerOf(request);
      const draft = draftTrace(request.body);
      const append = () => writes.append(teamId, [draft], idempotentRequest(request));
      const show = ([trace]: readonly Trace[]): void => send(reply, trace, null);
      const isPriced = priceMissingCosts || asksForCosts(request.query);
      const priced = isPriced ? pricing.price(teamId, draft) : null;
      const appended = priced ? priced.then(append) : append();
      appended
        .then((stored) => {
          const traces = tracesToShow(reader, teamId, stored, reply);
          return traces instanceof Promise ? traces.then(show) : show(traces);
        })
        .catch((error: unknown) => reply.send(error));
    },
  );

  /** Stores a trace that a decoding thread has decoded. */
  async function storeDecoded(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { teamId } = callerOf(request);
    const body = request.body as DecodedBody;
    const { drafts, payloads } = await body.traces();
    const idempotent = idempotentRequest(request);
    const appended = await writes.append(teamId, drafts, idempotent, { payloads });
    const traces = await tracesToShow(reader, teamId, appended, reply);
    send(reply, traces[0], appended.kind === 'recorded' ? body.shown(traces) : null);
  }

  function send(
    reply: FastifyReply,
    trace: Trace | undefined,
    json: readonly Buffer[] | null,
  ): void {
    if (!trace) throw new Error('the store returned no trace');
    reply.code(201).header('location', `${basePath}/traces/${trace.id}`);
    replyBudget.sendStored(reply, json ?? traceJson(trace));
  }
};
