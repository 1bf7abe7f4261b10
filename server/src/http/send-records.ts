import type { FastifyReply } from 'fastify';
import type { NamedTally } from '../core/analytics.ts';
import { jsonContentType, recordsJson } from './record-json.ts';

/** Answers a list of records that is read in chunks: each chunk becomes text at once, and is then forgotten. */
export async function sendRecords(
  reply: FastifyReply,
  read: (take: (chunk: readonly NamedTally[]) => void) => Promise<void>,
  recordOf: (group: NamedTally) => Parameters<typeof recordsJson>[0][number],
): Promise<FastifyReply> {
  const pieces: string[] = [];
  await read((chunk) => {
    pieces.push(recordsJson(chunk.map(recordOf)));
  });
  return reply.type(jsonContentType).send(`[${pieces.join(',')}]`);
}
