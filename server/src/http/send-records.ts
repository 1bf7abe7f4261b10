import type { FastifyReply } from 'fastify';
import type { NamedTally } from '../core/analytics.ts';
import { jsonContentType, recordsJson } from './record-json.ts';

/** Answers a list of records that is read in chunks: each chunk becomes text at once, and is then forgotten. */
export async function sendRecords(
  reply: FastifyReply,
  read: (take: (chunk: readonly NamedTally[]) => void) => Promise<void>,
  recordOf: (group: NamedTally) => Parameters<typeof recordsJson>[0][number],
  limit = Number.POSITIVE_INFINITY,
): Promise<FastifyReply> {
  const pieces: string[] = [];
  let left = limit;
  await read((chunk) => {
    const first = chunk.slice(0, left);
    left -= first.length;
    if (first.length > 0) pieces.push(recordsJson(first.map(recordOf)));
  });
  return reply.type(jsonContentType).send(`[${pieces.join(',')}]`);
}
