import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GroupMeasures } from '../core/analytics.ts';
import type { GroupDimension, GroupList } from '../store/trace-reader.ts';
import { groupJson } from './analytics-json.ts';
import { isGone } from './reply-budget.ts';
import type { ReplyBudget } from './reply-budget.ts';

/** Sends a list of groups. A long list is read and sent chunk by chunk. */
export function sendGroups(
  budget: ReplyBudget,
  request: FastifyRequest,
  reply: FastifyReply,
  dimension: GroupDimension,
  { first, rest }: GroupList,
): FastifyReply {
  const recordsOf = (groups: readonly GroupMeasures[]): string =>
    groups.map((group) => groupJson(dimension, group)).join(',');
  if (rest === null) return budget.send(request, reply, `[${recordsOf(first)}]`);
  // However the reply ends: sent, aborted, failed, or without a body for a HEAD.
  reply.raw.once('close', () => rest.close());
  if (isGone(reply)) rest.close();
  return budget.stream(request, reply, `[${recordsOf(first)}`, piecesOf(rest, recordsOf));
}

async function* piecesOf(
  rest: AsyncIterable<readonly GroupMeasures[]>,
  recordsOf: (groups: readonly GroupMeasures[]) => string,
): AsyncGenerator<string> {
  for await (const groups of rest) yield `,${recordsOf(groups)}`;
  yield ']';
}
