import type { FastifyReply } from 'fastify';
import type { NamedTally } from '../core/analytics.ts';

/** Answers a list of records that is read in chunks: each chunk becomes text at once, and is then forgotten. */
export async function sendRecords(
  reply: FastifyReply,
  read: (take: (chunk: readonly NamedTally[]) => void) => Promise<void>,
  recordOf: (group: NamedTally) => object,
): Promise<FastifyReply> {
  const pieces: string[] = [];
  await read((chunk) => {
    pieces.push(chunk.map((group) => JSON.stringify(recordOf(group))).join(','));
  });
  return reply.type('application/json; charset=utf-8').send(`[${pieces.join(',')}]`);
}
