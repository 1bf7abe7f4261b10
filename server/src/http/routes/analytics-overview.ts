import { overviewOf } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType, recordJson } from '../record-json.ts';
import type { Route } from '../route.ts';
import { analyticsRefusals, replies } from '../schemas.ts';

/** `GET /analytics/overview`: one row, whatever the number of traces. */
export const getOverview: Route = (app, { store, gate }) => {
  app.get(
    '/analytics/overview',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getOverview',
        summary: "Sums over all of the team's traces",
        tags: ['analytics'],
        response: { 200: replies.overview, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const overview = overviewOf(await store.total(teamId));
      return reply.type(jsonContentType).send(recordJson(overview));
    },
  );
};
