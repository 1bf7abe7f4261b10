import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import {
  areDaysOf,
  dailyQuery,
  everyDay,
  onlyMeasures,
  overviewQuery,
} from '../../core/analytics.ts';
import type { DayMeasures } from '../../core/analytics.ts';
import { calendarOf } from '../../core/calendar.ts';
import { breakdownFields } from '../../core/dimensions.ts';
import type { Tally } from '../../core/query.ts';
import type { LabelName } from '../../core/trace-fields.ts';
import type { TallyList, TraceReader } from '../../store/trace-reader.ts';
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

/** `GET /analytics/overview`: reads two rollups and the traces that are not rolled up yet, however many traces there are. */
export const getOverview: Route = (app, { reader, gate }) => {
  const schema = schemaOf('getOverview', "Totals over all of the team's traces", replies.overview);
  const options = { onRequest: requireKey(gate, 'read'), schema };
  app.get('/analytics/overview', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    const { first } = await reader.tallies(teamId, overviewQuery);
    return reply.type(jsonContentType).send(overviewJson(onlyMeasures(first)));
  });
};

/** `GET /analytics/daily`: one record per day. */
export const getDaily: Route = (app, { reader, gate, clock }) => {
  const schema = schemaOf('getDaily', 'Totals per day over the last 7 days', replies.daily);
  const options = { onRequest: requireKey(gate, 'read'), schema };
  app.get('/analytics/daily', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    const days = await readDays(reader, teamId, clock());
    return reply.type(jsonContentType).send(`[${days.map(dayJson).join(',')}]`);
  });
};

/** If the time zone of the team changes between the two reads, it reads again. */
async function readDays(
  reader: TraceReader,
  teamId: string,
  nowUs: number,
): Promise<DayMeasures[]> {
  for (let attempt = 1; ; attempt++) {
    const calendar = calendarOf(await reader.timeZone(teamId));
    const { first } = await reader.tallies(teamId, dailyQuery(nowUs, calendar));
    if (areDaysOf(calendar, first)) return everyDay(nowUs, calendar, first);
    if (attempt === daysAttemptsMax) throw new Error('the days do not fit the time zone');
  }
}

const daysAttemptsMax = 3;

/** `GET /analytics/by-model`: one record per model. */
export const getByModel = groupRoute(
  'by-model',
  breakdownFields.model,
  schemaOf('getByModel', 'Calls, latency, cost and success rate per model', replies.byModel),
);

/** `GET /analytics/by-feature`: one record per feature. */
export const getByFeature = groupRoute(
  'by-feature',
  breakdownFields.feature,
  schemaOf('getByFeature', 'Calls, latency, cost and success rate per feature', replies.byFeature),
);

function groupRoute(path: string, label: LabelName, schema: ReturnType<typeof schemaOf>): Route {
  const query = {
    filter: { [label]: 'set' },
    groupBy: [label],
    range: null,
    interval: null,
    sumsOnly: true,
  } as const;
  return (app, { reader, gate, replyBudget }) => {
    const options = {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: { ...schema, querystring: GroupQuery },
    };
    app.get(`/analytics/${path}`, options, async (request, reply) => {
      const { teamId } = callerOf(request);
      const { limit } = request.query;
      const rowsMax = limit === undefined ? null : Number(limit);
      const groups = await reader.tallies(teamId, query, rowsMax, () => !isGone(reply));
      return sendGroups(replyBudget, request, reply, label, groups);
    });
  };
}

/** A long list is read and sent chunk by chunk. */
function sendGroups(
  budget: ReplyBudget,
  request: FastifyRequest,
  reply: FastifyReply,
  label: LabelName,
  { first, rest }: TallyList,
): FastifyReply {
  const recordsOf = (groups: readonly Tally[]): string =>
    groups.map((group) => groupJson(label, group)).join(',');
  if (rest !== null) {
    // However the reply ends: sent, aborted, failed, or without a body for a HEAD.
    reply.raw.once('close', () => rest.close());
    if (isGone(reply)) rest.close();
  }
  const pieces = rest && piecesOf(rest, recordsOf);
  return budget.sendPieces(request, reply, `[${recordsOf(first)}`, pieces, ']');
}

async function* piecesOf(
  rest: AsyncIterable<readonly Tally[]>,
  recordsOf: (groups: readonly Tally[]) => string,
): AsyncGenerator<string> {
  for await (const groups of rest) yield `,${recordsOf(groups)}`;
}
