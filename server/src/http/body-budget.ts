import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What this request holds of the budget. */
    bodyBytes: number;
  }
}

/**
 * Bounds the memory of all bodies together, from before the first byte is read until the answer has left: without it, a thousand
 * slow uploads of the largest size would each be within its limit and together fill the machine.
 */
export interface BodyBudget {
  /** A hook that takes what the request announces, and gives it back when the answer has left. */
  hold(request: FastifyRequest, reply: FastifyReply, done: () => void): void;
  /** Another size has come out, such as that of a body which was unpacked. */
  resize(request: FastifyRequest, bytes: number): void;
}

export function openBodyBudget(budgetBytes: number): BodyBudget {
  let inFlightBytes = 0;

  function resize(request: FastifyRequest, bytes: number): void {
    // The caller has gone, and nobody would give it back.
    if (request.raw.socket.destroyed) return;
    const more = bytes - request.bodyBytes;
    if (inFlightBytes + more > budgetBytes) {
      // The body that is still coming is not wanted.
      fail('queue_full', { headers: { connection: 'close' } });
    }
    inFlightBytes += more;
    request.bodyBytes = bytes;
  }

  return {
    hold(request, reply, done) {
      resize(request, announcedBytes(request));
      // 'close' comes after every answer, and also when the caller goes away.
      reply.raw.on('close', () => {
        inFlightBytes -= request.bodyBytes;
        request.bodyBytes = 0;
      });
      done();
    },
    resize,
  };
}

/** A body without a length may be as large as any; one that is too large is refused by its length alone. */
function announcedBytes({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  const length = Number(headers['content-length'] ?? bodyLimit);
  return Math.min(length, bodyLimit);
}
