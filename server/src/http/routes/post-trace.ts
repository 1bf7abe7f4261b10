import { draftTrace } from '../../core/trace.ts';
import { callerOf, requireKey } from '../auth.ts';
import { onceOf, tracesToShow } from '../idempotency.ts';
import type { Route } from '../route.ts';
import { IdempotencyHeaders } from '../parameters.ts';
import { TraceBody, refusals, replies } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';

/** `POST /traces`: a 201 means that the trace is on disk, readable and counted. */
export const postTrace: Route = (app, { store, commits, gate, replyBudget, basePath }) => {
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
        response: {
          201: replies.trace,
          ...refusals.body,
          ...refusals.key,
          ...refusals.invalidOrReused,
          ...refusals.tooMany,
          ...refusals.write,
        },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const appended = await commits.append(teamId, [draftTrace(request.body)], onceOf(request));
      const [trace] = await tracesToShow(store, teamId, appended, reply);
      if (!trace) throw new Error('the store answered without the trace');
      reply.code(201).header('location', `${basePath}/traces/${trace.id}`);
      return replyBudget.sendStored(reply, JSON.stringify(traceJson(trace)));
    },
  );
};
