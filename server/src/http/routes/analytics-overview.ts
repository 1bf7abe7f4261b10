import { overviewJson } from '../analytics-json.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType } from '../content-type.ts';
import type { Route } from '../route.ts';
import { analyticsFailures, replies } from '../schemas.ts';

/** `GET /analytics/overview`: reads one rollup row, however many traces there are. */
export const getOverview: Route = (app, { reader, gate }) => {
  app.get(
    '/analytics/overview',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getOverview',
        summary: "Totals over all of the team's traces",
        tags: ['analytics'],
        response: { 200: replies.overview, ...analyticsFailures },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      return reply.type(jsonContentType).send(overviewJson(await reader.total(teamId)));
    },
  );
};
