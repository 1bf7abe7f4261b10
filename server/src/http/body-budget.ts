import type { FastifyReply, FastifyRequest } from 'fastify';
import { FairShare } from '../core/fair-share.ts';
import type { Holder } from '../core/fair-share.ts';
import { fail } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What this request holds of the budget. */
    bodyBytes: number;
    /** In whose share they count. */
    bodyHolder: Holder | null;
  }
}

/**
 * Bounds the memory of all bodies together, from their first byte until the reply has left. Bytes count when they arrive, so a
 * connection that only announces a body holds nothing; and they are shared fairly, so no team can take the room of the others.
 */
export interface BodyBudget {
  /** What all requests hold now. */
  readonly usedBytes: number;
  /** Gives back what the request holds when its reply has left or the caller has gone. */
  hold(request: FastifyRequest, reply: FastifyReply): void;
  /** Counts bytes that have arrived or were unpacked. Fails with 503 past the caller's share. */
  add(request: FastifyRequest, bytes: number): void;
  /** Counts bytes that are no longer held. */
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
      reply.raw.once('close', () => remove(request, request.bodyBytes));
    },
    add(request, bytes) {
      // The caller has gone, and the 'close' that gives bytes back with it.
      if (request.raw.socket.destroyed) return;
      // The caller of a sign-in is known only later: what was counted for one holder comes back to the same.
      request.bodyHolder ??= request.caller ?? anonymous;
      // The rest of the body is not wanted.
      if (!share.tryTake(request.bodyHolder, bytes)) {
        fail('queue_full', { headers: { connection: 'close' } });
      }
      request.bodyBytes += bytes;
    },
    remove,
  };
}

/** All requests without a caller, such as sign-ins, share the part of one team. */
const anonymous: Holder = { teamId: 'anonymous', keyId: null };
