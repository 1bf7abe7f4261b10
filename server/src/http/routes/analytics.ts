import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { dailyRange, everyDay } from '../../core/analytics.ts';
import type { GroupMeasures } from '../../core/analytics.ts';
import type { GroupDimension, GroupList } from '../../store/trace-reader.ts';
import { dayJson, groupJson, overviewJson } from '../analytics-json.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType } from '../content-type.ts';
import { GroupQuery } from '../parameters.ts';
import { isGone } from '../reply-budget.ts';
import type { ReplyBudget } from '../reply-budget.ts';
import type { Route } from '../route.ts';
import { readFailures, replies } from '../schemas.ts';

const schemaOf = (operationId: string, summary: string, records: TSchema) => ({
  operationId,
  summary,
  tags: ['analytics'],
  response: { 200: records, ...readFailures },
});

/** `GET /analytics/overview`: reads one rollup row, however many traces there are. */
export const getOverview: Route = (app, { reader, gate }) => {
  const schema = schemaOf('getOverview', "Totals over all of the team's traces", replies.overview);
  const options = { onRequest: requireKey(gate, 'read'), schema };
  app.get('/analytics/overview', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    return reply.type(jsonContentType).send(overviewJson(await reader.total(teamId)));
  });
};

/** `GET /analytics/daily`: one record per day. */
export const getDaily: Route = (app, { reader, gate, clock }) => {
  const schema = schemaOf('getDaily', 'Totals per day over the last 7 days', replies.daily);
  const options = { onRequest: requireKey(gate, 'read'), schema };
  app.get('/analytics/daily', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    const range = dailyRange(clock());
    const days = everyDay(range, await reader.days(teamId, range));
    return reply.type(jsonContentType).send(`[${days.map(dayJson).join(',')}]`);
  });
};

/** `GET /analytics/by-model`: one record per model. */
export const getByModel = groupRoute(
  'model',
  schemaOf('getByModel', 'Calls, latency, cost and success rate per model', replies.byModel),
);

/** `GET /analytics/by-feature`: one record per feature. */
export const getByFeature = groupRoute(
  'feature',
  schemaOf('getByFeature', 'Calls, latency, cost and success rate per feature', replies.byFeature),
);

function groupRoute(dimension: GroupDimension, schema: ReturnType<typeof schemaOf>): Route {
  return (app, { reader, gate, replyBudget }) => {
    const options = {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: { ...schema, querystring: GroupQuery },
    };
    app.get(`/analytics/by-${dimension}`, options, async (request, reply) => {
      const { teamId } = callerOf(request);
      const { limit } = request.query;
      const rowsMax = limit === undefined ? null : Number(limit);
      const groups = await reader.groups(teamId, dimension, rowsMax);
      return sendGroups(replyBudget, request, reply, dimension, groups);
    });
  };
}

/** A long list is read and sent chunk by chunk. */
function sendGroups(
  budget: ReplyBudget,
  request: FastifyRequest,
  reply: FastifyReply,
  dimension: GroupDimension,
  { first, rest }: GroupList,
): FastifyReply {
  const recordsOf = (groups: readonly GroupMeasures[]): string =>
    groups.map((group) => groupJson(dimension, group)).join(',');
  if (rest !== null) {
    // However the reply ends: sent, aborted, failed, or without a body for a HEAD.
    reply.raw.once('close', () => rest.close());
    if (isGone(reply)) rest.close();
  }
  const pieces = rest && piecesOf(rest, recordsOf);
  return budget.sendPieces(request, reply, `[${recordsOf(first)}`, pieces, ']');
}

async function* piecesOf(
  rest: AsyncIterable<readonly GroupMeasures[]>,
  recordsOf: (groups: readonly GroupMeasures[]) => string,
): AsyncGenerator<string> {
  for await (const groups of rest) yield `,${recordsOf(groups)}`;
}
