import type { FastifyReply, FastifyRequest } from 'fastify';
import { FairShare } from '../core/fair-share.ts';
import type { Holder } from '../core/fair-share.ts';
import { fail } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes that this request holds in the budget. */
    bodyBytes: number;
    /** The holder whose share they count against. */
    bodyHolder: Holder | null;
  }
}

/**
 * Bounds the memory of all bodies together, from their first byte until the reply is sent. Bytes are counted when they arrive, so a
 * connection that only announces a body uses nothing. The budget is shared fairly, so no team can use it up for the others.
 */
export interface BodyBudget {
  /** The bytes that all requests hold now. */
  readonly usedBytes: number;
  /** Releases the request's bytes when its reply is sent or the caller has disconnected. */
  hold(request: FastifyRequest, reply: FastifyReply): void;
  /** Counts bytes that have arrived or were decoded. Fails with 503 if they exceed the caller's share. */
  add(request: FastifyRequest, bytes: number): void;
  /** Releases bytes that are no longer in memory. */
  remove(request: FastifyRequest, bytes: number): void;
}

export function openBodyBudget(budgetBytes: number): BodyBudget {
  const share = new FairShare(budgetBytes);

  function remove(request: FastifyRequest, bytes: number): void {
    const held = Math.min(bytes, request.bodyBytes);
    if (held === 0) return;
    share.give(request.bodyHolder ?? anonymous, held);
    request.bodyBytes -= held;
  }

  return {
    get usedBytes() {
      return share.used;
    },
    hold(request, reply) {
      reply.raw.on('close', () => remove(request, request.bodyBytes));
    },
    add(request, bytes) {
      // The caller has disconnected, and the 'close' event that releases bytes has already fired.
      if (request.raw.socket.destroyed) return;
      // The caller of a sign-in is known only later, so the holder is set once: bytes are released from the share they were counted in.
      request.bodyHolder ??= request.caller ?? anonymous;
      // Close the connection instead of reading the rest of the body.
      if (!share.tryTake(request.bodyHolder, bytes)) {
        fail('queue_full', { headers: { connection: 'close' } });
      }
      request.bodyBytes += bytes;
    },
    remove,
  };
}

/** All requests without a caller, such as sign-ins, count as one team. */
const anonymous: Holder = { teamId: 'anonymous', keyId: null };
