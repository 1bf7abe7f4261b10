import { modelRecord } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { sendRecords } from '../send-records.ts';
import type { Route } from '../route.ts';
import { analyticsRefusals, GroupQuery, refusals, replies } from '../schemas.ts';

/** `GET /analytics/by-model`: one row a model. */
export const getByModel: Route = (app, { store, gate }) => {
  app.get(
    '/analytics/by-model',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getByModel',
        summary: 'Cost and performance per model',
        tags: ['analytics'],
        querystring: GroupQuery,
        response: { 200: replies.byModel, ...refusals.invalid, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const limit = request.query.limit === undefined ? undefined : Number(request.query.limit);
      return sendRecords(reply, (take) => store.groups(teamId, 'model', take), modelRecord, limit);
    },
  );
};
