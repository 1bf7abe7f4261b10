import { dailyRange, everyDay } from '../../core/analytics.ts';
import { dayJson } from '../analytics-json.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType } from '../content-type.ts';
import type { Route } from '../route.ts';
import { analyticsFailures, replies } from '../schemas.ts';

/** `GET /analytics/daily`: one record per day. */
export const getDaily: Route = (app, { reader, gate, clock }) => {
  app.get(
    '/analytics/daily',
    {
      onRequest: requireKey(gate, 'read'),
      schema: {
        operationId: 'getDaily',
        summary: 'Daily usage over the last 7 days',
        tags: ['analytics'],
        response: { 200: replies.daily, ...analyticsFailures },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const range = dailyRange(clock());
      const days = everyDay(range, await reader.days(teamId, range));
      return reply.type(jsonContentType).send(`[${days.map(dayJson).join(',')}]`);
    },
  );
};
