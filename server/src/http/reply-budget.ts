import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FairShare } from '../core/fair-share.ts';
import type { Holder } from '../core/fair-share.ts';
import { Failure, fail } from '../errors.ts';
import { limits } from '../limits.ts';
import { callerOf } from './auth.ts';
import { LoopTurns } from './loop-turns.ts';
import { jsonContentType } from './content-type.ts';
import { slicesOf } from './text-slices.ts';

/**
 * Bounds the memory of replies that wait for their peers. A large reply is sent in slices as fast as the peer reads them, and counts
 * until it is sent. The budget is shared fairly between teams and keys. A peer that does not read is disconnected.
 */
export interface ReplyBudget {
  /** The bytes that all replies hold now. */
  readonly usedBytes: number;
  /**
   * A hook for reads that may be large: 503 if the caller's unread replies fill its share. If many arrive at once, they are
   * spread over several turns of the event loop.
   */
  admit(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void;
  /** Sends a JSON text. Fails with 503 if it is large and exceeds the caller's share. */
  send(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply;
  /** Sends the JSON text of what was just stored. It never fails: the body budget counted it before it was stored. */
  sendStored(reply: FastifyReply, text: string): FastifyReply;
  /**
   * Sends a JSON text in pieces, each created when the peer has read the previous one. Fails with 503 if the first one exceeds the
   * caller's share.
   */
  stream(
    request: FastifyRequest,
    reply: FastifyReply,
    first: string,
    rest: AsyncIterable<string>,
  ): FastifyReply;
  close(): void;
}

export function openReplyBudget(budgetBytes: number): ReplyBudget {
  const share = new FairShare(budgetBytes);
  const turns = new LoopTurns();
  const sendings = new Set<Sending>();
  const sweep = setInterval(dropStalled, limits.timeoutCheckIntervalMs).unref();
  let onRoom = Promise.withResolvers<void>();

  function open(reply: FastifyReply, holder: Holder | null): Sending {
    const held = holder && { share, holder, onRoom: announceRoom };
    const sending = new Sending(held, () => void reply.raw.destroy());
    // If the peer has already disconnected, there is no further 'close' event.
    if (isGone(reply)) {
      sending.end();
      return sending;
    }
    sendings.add(sending);
    reply.raw.once('close', () => {
      sendings.delete(sending);
      sending.end();
    });
    return sending;
  }

  function announceRoom(): void {
    onRoom.resolve();
    onRoom = Promise.withResolvers<void>();
  }

  function dropStalled(): void {
    const latestMs = performance.now() - limits.replyStallMsMax;
    for (const { offeredMs, drop } of sendings) if (offeredMs < latestMs) drop();
  }

  function admitNow(request: FastifyRequest): void {
    if (!share.hasRoom(callerOf(request))) fail('reads_busy');
  }

  async function* piecesFor(
    sending: Sending,
    first: string,
    rest: AsyncIterable<string>,
  ): AsyncGenerator<string> {
    yield* slicesFor(sending, first);
    for await (const piece of rest) {
      sending.hold(Buffer.byteLength(piece));
      yield* slicesFor(sending, piece);
      // The replies that use the share make progress or are dropped, so this wait ends.
      while (!sending.hasRoom && !sending.hasEnded) await onRoom.promise;
    }
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
    send(request, reply, text) {
      if (isSmall(text) || request.method === 'HEAD') return sendWhole(reply, text);
      const bytes = Buffer.byteLength(text);
      const sending = open(reply, callerOf(request));
      if (!sending.tryHold(bytes)) throw new Failure('reads_busy');
      return sendSlices(reply, sending, text, bytes);
    },
    sendStored(reply, text) {
      if (isSmall(text)) return sendWhole(reply, text);
      return sendSlices(reply, open(reply, null), text, Buffer.byteLength(text));
    },
    stream(request, reply, first, rest) {
      // The reply to a HEAD has no body, so none is created.
      if (request.method === 'HEAD') return reply.type(jsonContentType).send(Readable.from([]));
      const sending = open(reply, callerOf(request));
      if (!sending.tryHold(Buffer.byteLength(first))) throw new Failure('reads_busy');
      return reply.type(jsonContentType).send(Readable.from(piecesFor(sending, first, rest)));
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

function sendWhole(reply: FastifyReply, text: string): FastifyReply {
  return reply.type(jsonContentType).send(text);
}

function sendSlices(
  reply: FastifyReply,
  sending: Sending,
  text: string,
  bytes: number,
): FastifyReply {
  return reply
    .type(jsonContentType)
    .header('content-length', bytes)
    .send(Readable.from(slicesFor(sending, text)));
}

interface Held {
  share: FairShare;
  holder: Holder;
  /** Called when the share may have room again. */
  onRoom(): void;
}

/** One large reply that is being sent. */
class Sending {
  /** When the slice that the peer is reading was offered; infinity if there is none. */
  offeredMs = Infinity;
  hasEnded = false;
  readonly drop: () => void;
  /** The share that it counts against; null if the body budget counts it. */
  readonly #held: Held | null;
  #bytes = 0;

  constructor(held: Held | null, drop: () => void) {
    this.#held = held;
    this.drop = drop;
  }

  get hasRoom(): boolean {
    return this.#held === null || this.#held.share.hasRoom(this.#held.holder);
  }

  /** A team that holds nothing else may hold one reply of any size. */
  tryHold(bytes: number): boolean {
    if (this.#held === null || this.hasEnded) return true;
    const { share, holder } = this.#held;
    if (share.heldBy(holder.teamId) === 0) share.take(holder, bytes);
    else if (!share.tryTake(holder, bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Counts a piece that is already in memory. */
  hold(bytes: number): void {
    if (this.#held === null || this.hasEnded) return;
    this.#held.share.take(this.#held.holder, bytes);
    this.#bytes += bytes;
  }

  letGo(): void {
    if (this.#held === null || this.#bytes === 0) return;
    this.#held.share.give(this.#held.holder, this.#bytes);
    this.#bytes = 0;
    this.#held.onRoom();
  }

  end(): void {
    this.hasEnded = true;
    this.letGo();
    this.#held?.onRoom();
  }
}

function* slicesFor(sending: Sending, text: string): Generator<string> {
  for (const slice of slicesOf(text, limits.streamSliceChars)) {
    sending.offeredMs = performance.now();
    yield slice;
    sending.offeredMs = Infinity;
  }
  sending.letGo();
}
