import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { dailyRange, daysIn, everyDay, onlyMeasures } from '../../core/analytics.ts';
import type { DayMeasures } from '../../core/analytics.ts';
import { breakdownFields } from '../../core/dimensions.ts';
import type { Tally, TraceFilter } from '../../core/query.ts';
import type { SentParameters } from '../../core/question.ts';
import { areStartsOf } from '../../core/tally-sheet.ts';
import type { LabelName } from '../../core/trace-fields.ts';
import { fail } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { TallyList, TraceReader } from '../../store/trace-reader.ts';
import { dayJson, groupJson, overviewJson, reportPieces } from '../analytics-json.ts';
import { askedIn, readAsked } from '../asked.ts';
import { callerOf, requireKey } from '../auth.ts';
import { jsonContentType } from '../content-type.ts';
import { AnalyticsQuery, CutGroupQuery, GroupQuery, ReportQuery } from '../parameters.ts';
import { isGone } from '../reply-budget.ts';
import type { ReplyBudget } from '../reply-budget.ts';
import { askReport, inTimeZone } from '../report.ts';
import type { Route } from '../route.ts';
import { readFailures, replies } from '../schemas.ts';

const schemaOf = (operationId: string, summary: string, records: TSchema) => ({
  operationId,
  summary,
  tags: ['analytics'],
  response: { 200: records, ...readFailures },
});

/** `GET /analytics/overview`: without parameters it reads two rollups and the traces that are not rolled up yet. */
export const getOverview: Route = (app, { reader, gate, clock }) => {
  const summary = "Totals over the team's traces, or over those that match";
  const schema = schemaOf('getOverview', summary, replies.overview);
  const options = {
    onRequest: requireKey(gate, 'read'),
    schema: { ...schema, querystring: AnalyticsQuery },
  };
  app.get('/analytics/overview', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    const { criteria } = await readAsked(reader, teamId, request.query as SentParameters, clock());
    const query = { ...criteria, groupBy: [], interval: null };
    const { first } = await reader.tallies(teamId, query, null, () => !isGone(reply));
    return reply.type(jsonContentType).send(overviewJson(onlyMeasures(first)));
  });
};

/** `GET /analytics/daily`: one record per day. */
export const getDaily: Route = (app, { reader, gate, clock }) => {
  const summary = 'Totals per day over the last 7 days, or over the days of a range';
  const schema = schemaOf('getDaily', summary, replies.daily);
  const options = {
    onRequest: requireKey(gate, 'read'),
    schema: { ...schema, querystring: AnalyticsQuery },
  };
  app.get('/analytics/daily', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    const days = await readDays(
      reader,
      teamId,
      request.query as SentParameters,
      clock(),
      () => !isGone(reply),
    );
    return reply.type(jsonContentType).send(`[${days.map(dayJson).join(',')}]`);
  });
};

function readDays(
  reader: TraceReader,
  teamId: string,
  sent: SentParameters,
  nowUs: number,
  isWanted: () => boolean,
): Promise<DayMeasures[]> {
  return inTimeZone(reader, teamId, async (calendar) => {
    const { criteria } = askedIn(calendar, sent, nowUs, 'hour');
    const range = criteria.range ?? dailyRange(nowUs, calendar);
    const days = daysIn(range, calendar);
    if (days.length > limits.dailyRowsMax) refuseDays(sent);
    const query = { ...criteria, range, groupBy: [], interval: 'day' } as const;
    const { first } = await reader.tallies(teamId, query, null, isWanted);
    return areStartsOf('day', calendar, first) ? everyDay(days, calendar, first) : null;
  });
}

function refuseDays(sent: SentParameters): never {
  const field = sent['last'] === undefined ? 'from' : 'last';
  const message = `must give at most ${limits.dailyRowsMax} days`;
  return fail('invalid_input', { errors: [{ field, message }] });
}

/** `GET /analytics/query`: any grouping, interval and order. */
export const getReport: Route = (app, { reader, gate, clock, replyBudget }) => {
  const summary = 'Any question: grouped by up to two fields, per interval, with percentiles';
  const schema = schemaOf('queryAnalytics', summary, replies.report);
  const options = {
    onRequest: [requireKey(gate, 'read'), replyBudget.admit],
    schema: { ...schema, querystring: ReportQuery },
  };
  app.get('/analytics/query', options, async (request, reply) => {
    const { teamId } = callerOf(request);
    const sent = request.query as SentParameters;
    const answered = await askReport(reader, teamId, sent, clock(), () => !isGone(reply));
    const { first, rest, last } = reportPieces(answered);
    return replyBudget.sendPieces(request, reply, first, rest, last);
  });
};

/** `GET /analytics/by-model`: one record per model. */
export const getByModel = groupRoute('model', replies.byModel, 'getByModel', GroupQuery);

/** `GET /analytics/by-feature`: one record per feature. */
export const getByFeature = groupRoute('feature', replies.byFeature, 'getByFeature', GroupQuery);

/** `GET /analytics/by-user`: one record per user. */
export const getByUser = groupRoute('user', replies.byUser, 'getByUser', CutGroupQuery);

/** `GET /analytics/by-environment`: one record per environment. */
export const getByEnvironment = groupRoute(
  'environment',
  replies.byEnvironment,
  'getByEnvironment',
  CutGroupQuery,
);

/** `GET /analytics/by-provider`: one record per provider. */
export const getByProvider = groupRoute(
  'provider',
  replies.byProvider,
  'getByProvider',
  CutGroupQuery,
);

function groupRoute(
  name: keyof typeof breakdownFields,
  records: TSchema,
  operationId: string,
  querystring: typeof GroupQuery,
): Route {
  const label = breakdownFields[name];
  const rowsDefault = querystring === CutGroupQuery ? limits.groupRowsDefault : null;
  const summary = `Calls, latency, cost and success rate per ${name}`;
  return (app, { reader, gate, clock, replyBudget }) => {
    const options = {
      onRequest: [requireKey(gate, 'read'), replyBudget.admit],
      schema: { ...schemaOf(operationId, summary, records), querystring },
    };
    app.get(`/analytics/by-${name}`, options, async (request, reply) => {
      const { teamId } = callerOf(request);
      const sent = request.query as SentParameters;
      const { criteria } = await readAsked(reader, teamId, sent, clock());
      const query = {
        ...criteria,
        filter: withValue(criteria.filter, label),
        groupBy: [label],
        interval: null,
      };
      const { limit } = request.query;
      const rowsMax = limit === undefined ? rowsDefault : Number(limit);
      const groups = await reader.tallies(teamId, query, rowsMax, () => !isGone(reply));
      return sendGroups(replyBudget, request, reply, label, groups);
    });
  };
}

/** Traces without a value are not listed. */
function withValue(filter: TraceFilter, label: LabelName): TraceFilter {
  const accepted = filter[label];
  if (accepted === undefined || accepted === 'set') return { ...filter, [label]: 'set' };
  return { ...filter, [label]: accepted.filter((value) => value !== null) };
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
