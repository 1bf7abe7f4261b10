import { dailyRange, dailySeries } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import type { Route } from '../route.ts';
import { analyticsRefusals, replies } from '../schemas.ts';

/** `GET /analytics/daily`: one row a day. */
export const getDaily: Route = (app, { store, gate, clock }) => {
  app.get(
    '/analytics/daily',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getDaily',
        summary: 'The last 7 days of daily usage',
        tags: ['analytics'],
        response: { 200: replies.daily, ...analyticsRefusals },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const range = dailyRange(clock());
      return reply.send(dailySeries(range, await store.days(teamId, range)));
    },
  );
};
