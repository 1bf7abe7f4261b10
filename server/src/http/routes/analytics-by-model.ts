import { modelRecord } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { sendRecords } from '../send-records.ts';
import type { Route } from '../route.ts';
import { analyticsRefusals, replies } from '../schemas.ts';

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
        response: { 200: replies.byModel, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      return sendRecords(reply, (take) => store.groups(teamId, 'model', take), modelRecord);
    },
  );
};
