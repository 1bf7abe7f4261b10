import { eventUs } from '../../core/rollup.ts';
import { pricedCall } from '../../core/trace-cost.ts';
import { parseUuid } from '../../core/uuid.ts';
import { fail } from '../../errors.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType } from '../content-type.ts';
import { traceCostJson } from '../cost-json.ts';
import { TraceParams } from '../parameters.ts';
import { isGone } from '../reply-budget.ts';
import type { Route } from '../route.ts';
import { problem, readFailures, replies } from '../schemas.ts';

/** `GET /traces/{trace_id}/cost`: which prices apply to the call, what they give, and whether that is the stored cost. */
export const getTraceCost: Route = (app, { reader, gate, pricing, priceMissingCosts }) => {
  app.get(
    '/traces/:trace_id/cost',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getTraceCost',
        summary: 'Explain the cost of a trace',
        tags: ['traces'],
        params: TraceParams,
        response: {
          200: replies.traceCost,
          ...readFailures,
          404: problem('The team has no trace with this id.'),
        },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const id = parseUuid(request.params.trace_id);
      const trace = id === null ? null : await reader.narrow(teamId, id, () => !isGone(reply));
      if (trace === null) return fail('trace_not_found');
      const explanation = await pricing.explain(pricedCall(trace, teamId, eventUs(trace)));
      const json = traceCostJson(trace, explanation, priceMissingCosts);
      return reply.type(jsonContentType).send(JSON.stringify(json));
    },
  );
};
