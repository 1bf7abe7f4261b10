import { featureRecord } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { sendRecords } from '../send-records.ts';
import type { Route } from '../route.ts';
import { analyticsRefusals, replies } from '../schemas.ts';

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
        response: { 200: replies.byFeature, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      return sendRecords(reply, (take) => store.groups(teamId, 'feature', take), featureRecord);
    },
  );
};
