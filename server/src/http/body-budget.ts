import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';

/**
 * Bounds the memory of all bodies together, from before the first byte is read until the answer has left: without it, a thousand
 * slow uploads of the largest size would each be within its limit and together fill the machine.
 */
export function openBodyBudget(budgetBytes: number, bodyBytesMax: number) {
  let inFlightBytes = 0;
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const bytes = announcedBytes(request, bodyBytesMax);
    if (inFlightBytes + bytes > budgetBytes) {
      // The body that is still coming is not wanted.
      fail('queue_full', { headers: { connection: 'close' } });
    }
    inFlightBytes += bytes;
    // 'close' comes after every answer, and also when the caller goes away.
    reply.raw.on('close', () => (inFlightBytes -= bytes));
    done();
  };
}

/** A body without a length may be as large as any; one that is too large is refused by its length alone. */
function announcedBytes({ headers }: FastifyRequest, bodyBytesMax: number): number {
  const length = Number(headers['content-length'] ?? bodyBytesMax);
  return Math.min(length, bodyBytesMax);
}
