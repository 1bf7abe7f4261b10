import type { PayloadName } from '../../core/trace-fields.ts';
import { parseUuid } from '../../core/uuid.ts';
import { fail } from '../../errors.ts';
import { callerOf, requireKey } from '../auth.ts';
import { isGone } from '../reply-budget.ts';
import type { Route } from '../route.ts';
import { TraceParams } from '../parameters.ts';
import { problem, readFailures, replies } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';

/** `GET /traces/{trace_id}`: replies are the same if the trace does not exist, belongs to another team, or the id is not a UUID. */
export const getTrace: Route = (app, { reader, gate, replyBudget }) => {
  app.get(
    '/traces/:trace_id',
    {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: {
        operationId: 'getTrace',
        summary: 'Fetch one trace',
        tags: ['traces'],
        params: TraceParams,
        response: {
          200: replies.trace,
          ...readFailures,
          404: problem('The team has no trace with this id.'),
          500: problem('The stored trace is damaged.'),
        },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const id = parseUuid(request.params.trace_id);
      const trace = id === null ? null : await reader.trace(teamId, id, () => !isGone(reply));
      if (trace === null) return fail('trace_not_found');
      if (trace.damaged) refuseDamaged(trace.id, trace.damaged);
      return replyBudget.send(request, reply, traceJson(trace));
    },
  );
};

function refuseDamaged(id: string, damaged: readonly PayloadName[]): never {
  const fields = damaged.join(', ');
  return fail('trace_damaged', {
    say: `Part of this trace is damaged in the store and cannot be read: ${fields}. GET /traces shows the rest of it.`,
    cause: `trace ${id}: damaged ${fields}`,
  });
}
