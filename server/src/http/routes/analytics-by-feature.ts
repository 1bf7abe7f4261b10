import { featureRecord } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { rowsMaxOf, sendRecords } from '../send-records.ts';
import type { Route } from '../route.ts';
import { GroupQuery } from '../parameters.ts';
import { analyticsRefusals, replies } from '../schemas.ts';

/** `GET /analytics/by-feature`: one row a feature. */
export const getByFeature: Route = (app, { store, gate, replyBudget }) => {
  app.get(
    '/analytics/by-feature',
    {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: {
        operationId: 'getByFeature',
        summary: 'Cost and usage per feature',
        tags: ['analytics'],
        querystring: GroupQuery,
        response: { 200: replies.byFeature, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const groups = await store.groups(teamId, 'feature', rowsMaxOf(request.query));
      return sendRecords(replyBudget, request, reply, groups, featureRecord);
    },
  );
};
