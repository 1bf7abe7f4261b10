import type { TSchema } from 'typebox';
import type { GroupDimension } from '../../store/trace-reader.ts';
import { callerOf, requireKey } from '../auth.ts';
import { GroupQuery } from '../parameters.ts';
import type { Route } from '../route.ts';
import { analyticsFailures, replies } from '../schemas.ts';
import { sendGroups } from '../send-groups.ts';

/** `GET /analytics/by-model`: one record per model. */
export const getByModel = groupRoute('model', {
  path: '/analytics/by-model',
  operationId: 'getByModel',
  summary: 'Cost and performance per model',
  reply: replies.byModel,
});

/** `GET /analytics/by-feature`: one record per feature. */
export const getByFeature = groupRoute('feature', {
  path: '/analytics/by-feature',
  operationId: 'getByFeature',
  summary: 'Cost and usage per feature',
  reply: replies.byFeature,
});

interface GroupEndpoint {
  path: string;
  operationId: string;
  summary: string;
  reply: TSchema;
}

function groupRoute(
  dimension: GroupDimension,
  { path, operationId, summary, reply: records }: GroupEndpoint,
): Route {
  return (app, { reader, gate, replyBudget }) => {
    app.get(
      path,
      {
        onRequest: [requireKey(gate, 'read'), replyBudget.admit],
        schema: {
          operationId,
          summary,
          tags: ['analytics'],
          querystring: GroupQuery,
          response: { 200: records, ...analyticsFailures },
        },
      },
      async (request, reply) => {
        const { teamId } = callerOf(request);
        const { limit } = request.query;
        const groups = await reader.groups(
          teamId,
          dimension,
          limit === undefined ? null : Number(limit),
        );
        return sendGroups(replyBudget, request, reply, dimension, groups);
      },
    );
  };
}
