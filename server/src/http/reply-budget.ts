import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FairShare } from '../core/fair-share.ts';
import type { Holder } from '../core/fair-share.ts';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import { callerOf } from './auth.ts';
import { LoopTurns } from './loop-turns.ts';
import { jsonContentType } from './content-type.ts';
import { byteSlices, slicesOf } from './text-slices.ts';

/**
 * Bounds the memory of replies that wait for their peers. A large reply is sent in slices as fast as the peer reads them, and counts
 * until it is sent. The budget is shared fairly between teams and keys. A peer that does not read is disconnected.
 */
export interface ReplyBudget {
  /** The bytes that all replies hold now. */
  readonly usedBytes: number;
  /** A hook for large reads: 503 if the caller's unread replies fill its share. Many at once are spread over event-loop turns. */
  admit(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void;
  /** Sends a JSON text. Fails with 503 if it is large and exceeds the caller's share. */
  send(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply;
  /** Sends the JSON text of what was just stored. It never fails: the body budget counted it before it was stored. */
  sendStored(reply: FastifyReply, json: string | readonly Buffer[]): FastifyReply;
  /**
   * Sends a JSON text in pieces. Those of `rest`, if there are any, are created when the peer has read the previous one. Fails with
   * 503 if the first one exceeds the caller's share.
   */
  sendPieces(
    request: FastifyRequest,
    reply: FastifyReply,
    first: string,
    rest: AsyncIterable<string> | null,
    last: string,
  ): FastifyReply;
  close(): void;
}

/** One large reply that is being sent. */
interface Sending {
  reply: FastifyReply;
  /** Whose share it counts against; null if the body budget counts it. */
  holder: Holder | null;
  /** What it holds of the share now. */
  bytes: number;
  /** When the slice that the peer is reading was offered; infinity if there is none. */
  offeredMs: number;
}

export function openReplyBudget(budgetBytes: number): ReplyBudget {
  const share = new FairShare(budgetBytes);
  const turns = new LoopTurns();
  /** Those whose connection is open. */
  const sendings = new Set<Sending>();
  const sweep = setInterval(dropStalled, limits.timeoutCheckIntervalMs).unref();
  let onRoom = Promise.withResolvers<void>();

  /** Fails if there is no room for the bytes, except that a team that holds nothing may hold one reply of any size. */
  function begin(reply: FastifyReply, holder: Holder | null, bytes: number): Sending {
    const sending: Sending = { reply, holder, bytes: 0, offeredMs: Infinity };
    // If the peer has already disconnected, there is no further 'close' event.
    if (isGone(reply)) return sending;
    if (holder && share.heldBy(holder.teamId) > 0 && !share.hasRoom(holder, bytes)) {
      fail('reads_busy');
    }
    sendings.add(sending);
    reply.raw.once('close', () => {
      sendings.delete(sending);
      letGo(sending);
    });
    hold(sending, bytes);
    return sending;
  }

  function hold(sending: Sending, bytes: number): void {
    if (sending.holder === null || !sendings.has(sending)) return;
    share.take(sending.holder, bytes);
    sending.bytes += bytes;
  }

  function letGo(sending: Sending): void {
    if (sending.holder) share.give(sending.holder, sending.bytes);
    sending.bytes = 0;
    onRoom.resolve();
    onRoom = Promise.withResolvers<void>();
  }

  function dropStalled(): void {
    const latestMs = performance.now() - limits.replyStallMsMax;
    for (const { offeredMs, reply } of sendings) if (offeredMs < latestMs) reply.raw.destroy();
  }

  function admitNow(request: FastifyRequest): void {
    if (!share.hasRoom(callerOf(request))) fail('reads_busy');
  }

  function* slicesFor<T>(sending: Sending, slices: Iterable<T>): Generator<T> {
    for (const slice of slices) {
      sending.offeredMs = performance.now();
      yield slice;
      sending.offeredMs = Infinity;
    }
    letGo(sending);
  }

  async function* piecesFor(
    sending: Sending,
    holder: Holder,
    first: string,
    rest: AsyncIterable<string>,
    last: string,
  ): AsyncGenerator<string> {
    yield* slicesFor(sending, textSlices(first));
    for await (const piece of rest) {
      hold(sending, Buffer.byteLength(piece));
      yield* slicesFor(sending, textSlices(piece));
      // The replies that use the share make progress or are dropped, so this wait ends.
      while (!share.hasRoom(holder) && sendings.has(sending)) await onRoom.promise;
    }
    yield* slicesFor(sending, textSlices(last));
  }

  function send(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
    if (isSmall(text) || request.method === 'HEAD') return sendWhole(reply, text);
    return sendSlices(reply, callerOf(request), text);
  }

  function sendSlices(reply: FastifyReply, holder: Holder | null, text: string): FastifyReply {
    const bytes = Buffer.byteLength(text);
    return sendAll(reply, bytes, slicesFor(begin(reply, holder, bytes), textSlices(text)));
  }

  function sendBytes(reply: FastifyReply, pieces: readonly Buffer[]): FastifyReply {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (bytes <= limits.streamSliceChars) return sendWhole(reply, Buffer.concat(pieces, bytes));
    const sending = begin(reply, null, bytes);
    return sendAll(reply, bytes, slicesFor(sending, byteSlices(pieces, limits.streamSliceChars)));
  }

  return {
    get usedBytes() {
      return share.used;
    },
    admit(request, reply, done) {
      admitNow(request);
      turns.enter(callerOf(request).teamId, () => {
        if (isGone(reply)) return;
        try {
          // Other requests may have used up the share in the meantime.
          admitNow(request);
          done();
        } catch (error) {
          done(error as Error);
        }
      });
    },
    send,
    sendStored(reply, json) {
      if (typeof json !== 'string') return sendBytes(reply, json);
      return isSmall(json) ? sendWhole(reply, json) : sendSlices(reply, null, json);
    },
    sendPieces(request, reply, first, rest, last) {
      if (rest === null) return send(request, reply, first + last);
      reply.type(jsonContentType);
      // The reply to a HEAD has no body, so none is created.
      if (request.method === 'HEAD') return reply.send(Readable.from([]));
      const caller = callerOf(request);
      const sending = begin(reply, caller, Buffer.byteLength(first));
      return reply.send(Readable.from(piecesFor(sending, caller, first, rest, last)));
    },
    close() {
      clearInterval(sweep);
    },
  };
}

/** Whether the peer has disconnected. */
export function isGone({ raw }: FastifyReply): boolean {
  return raw.destroyed || raw.req.socket.destroyed;
}

function isSmall(text: string): boolean {
  return text.length <= limits.streamSliceChars;
}

function textSlices(text: string): Iterable<string> {
  return slicesOf(text, limits.streamSliceChars);
}

function sendWhole(reply: FastifyReply, json: string | Buffer): FastifyReply {
  return reply.type(jsonContentType).send(json);
}

function sendAll(
  reply: FastifyReply,
  bytes: number,
  slices: Iterable<string | Buffer>,
): FastifyReply {
  return reply.type(jsonContentType).header('content-length', bytes).send(Readable.from(slices));
}
