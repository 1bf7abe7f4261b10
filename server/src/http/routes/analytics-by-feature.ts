import { featureRecord } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { sendRecords } from '../send-records.ts';
import type { Route } from '../route.ts';
import { analyticsRefusals, GroupQuery, refusals, replies } from '../schemas.ts';

/** `GET /analytics/by-feature`: one row a feature. */
export const getByFeature: Route = (app, { store, gate }) => {
  app.get(
    '/analytics/by-feature',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getByFeature',
        summary: 'Cost and usage per feature',
        tags: ['analytics'],
        querystring: GroupQuery,
        response: { 200: replies.byFeature, ...refusals.invalid, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const limit = request.query.limit === undefined ? undefined : Number(request.query.limit);
      return sendRecords(
        reply,
        (take) => store.groups(teamId, 'feature', take),
        featureRecord,
        limit,
      );
    },
  );
};
