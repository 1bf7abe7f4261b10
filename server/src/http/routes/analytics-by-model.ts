import { modelRecord } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { rowsMaxOf, sendRecords } from '../send-records.ts';
import type { Route } from '../route.ts';
import { GroupQuery } from '../parameters.ts';
import { analyticsRefusals, replies } from '../schemas.ts';

/** `GET /analytics/by-model`: one row a model. */
export const getByModel: Route = (app, { store, gate, replyBudget }) => {
  app.get(
    '/analytics/by-model',
    {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: {
        operationId: 'getByModel',
        summary: 'Cost and performance per model',
        tags: ['analytics'],
        querystring: GroupQuery,
        response: { 200: replies.byModel, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const groups = await store.groups(teamId, 'model', rowsMaxOf(request.query));
      return sendRecords(replyBudget, request, reply, groups, modelRecord);
    },
  );
};
