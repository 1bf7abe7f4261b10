import { draftTrace } from '../../core/trace.ts';
import { callerOf, requireKey } from '../auth.ts';
import type { Route } from '../route.ts';
import { TraceBody, refusals, replies } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';

/** `POST /traces`: a 201 means that the trace is on disk, readable and counted. */
export const postTrace: Route = (app, { commits, gate, withinBodyBudget, basePath }) => {
  app.post(
    '/traces',
    {
      onRequest: [requireKey(gate, 'ingest'), withinBodyBudget],
      schema: {
        operationId: 'createTrace',
        summary: 'Record one trace',
        tags: ['traces'],
        body: TraceBody,
        response: {
          201: replies.trace,
          ...refusals.body,
          ...refusals.key,
          ...refusals.invalid,
          ...refusals.tooMany,
          ...refusals.write,
        },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const [trace] = await commits.append(teamId, [draftTrace(request.body)]);
      if (!trace) throw new Error('the store answered without the trace');
      return reply
        .code(201)
        .header('location', `${basePath}/traces/${trace.id}`)
        .send(traceJson(trace));
    },
  );
};
