import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NamedTally } from '../core/analytics.ts';
import type { GroupList } from '../store/store.ts';
import { recordsJson } from './record-json.ts';
import { isGone } from './reply-budget.ts';
import type { ReplyBudget } from './reply-budget.ts';

type RecordOf = (group: NamedTally) => Parameters<typeof recordsJson>[0][number];

/** A list of records; one too long for memory is read and sent chunk by chunk. */
export function sendRecords(
  budget: ReplyBudget,
  request: FastifyRequest,
  reply: FastifyReply,
  { first, rest }: GroupList,
  recordOf: RecordOf,
): FastifyReply {
  const firstJson = recordsJson(first.map(recordOf));
  if (rest === null) return budget.send(request, reply, `[${firstJson}]`);
  // However the reply ends: sent, cut off, refused, or never read as that of a HEAD.
  reply.raw.once('close', () => rest.close());
  if (isGone(reply)) rest.close();
  return budget.stream(request, reply, `[${firstJson}`, piecesOf(rest, recordOf));
}

async function* piecesOf(
  rest: AsyncIterable<readonly NamedTally[]>,
  recordOf: RecordOf,
): AsyncGenerator<string> {
  for await (const chunk of rest) yield `,${recordsJson(chunk.map(recordOf))}`;
  yield ']';
}

/** How many records were asked for; null for all of them. */
export function rowsMaxOf({ limit }: { limit?: string }): number | null {
  return limit === undefined ? null : Number(limit);
}
