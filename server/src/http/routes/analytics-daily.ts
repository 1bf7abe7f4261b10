import { dailyRange, dailySeries } from '../../core/analytics.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType, recordsJson } from '../record-json.ts';
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
      const series = dailySeries(range, await store.days(teamId, range));
      return reply.type(jsonContentType).send(`[${recordsJson(series)}]`);
    },
  );
};
