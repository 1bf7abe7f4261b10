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
 * Bounds the memory of replies that wait for their peers. A large reply goes out in slices as the peer takes them and counts
 * until it has left; what waits is shared fairly between teams and keys; a peer that does not read is disconnected.
 */
export interface ReplyBudget {
  /** What all replies hold now. */
  readonly usedBytes: number;
  /**
   * A hook in front of reads that may be large: 503 for a caller whose unread replies fill its share. Many of them at once are
   * spread over several turns of the event loop.
   */
  admit(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void;
  /** Sends a JSON text. Fails with 503 if it is large and past the caller's share. */
  send(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply;
  /** Sends the JSON text of what was just stored. It is never refused: the body budget has counted it before it was stored. */
  sendStored(reply: FastifyReply, text: string): FastifyReply;
  /**
   * Sends a JSON text in pieces, each made when the peer has taken the one before it. Fails with 503 if the first is past the
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
    // A peer that has gone already causes no further 'close'.
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
      // Those that hold the room make progress or are dropped, so this ends.
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
          // Others may have taken the room while it waited.
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
      // The body of a HEAD is never sent, so nothing of it is made.
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

/** Whether the peer has hung up. */
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
  /** Called when there may be room again. */
  onRoom(): void;
}

/** One large reply on its way. */
class Sending {
  /** When the slice was offered that the peer has not taken yet; infinity if there is none. */
  offeredMs = Infinity;
  hasEnded = false;
  readonly drop: () => void;
  /** In whose share it counts; null if it counts elsewhere. */
  readonly #held: Held | null;
  #bytes = 0;

  constructor(held: Held | null, drop: () => void) {
    this.#held = held;
    this.drop = drop;
  }

  get hasRoom(): boolean {
    return this.#held === null || this.#held.share.hasRoom(this.#held.holder);
  }

  /** A team that holds nothing else may have one reply of any size. */
  tryHold(bytes: number): boolean {
    if (this.#held === null || this.hasEnded) return true;
    const { share, holder } = this.#held;
    if (share.heldBy(holder.teamId) === 0) share.take(holder, bytes);
    else if (!share.tryTake(holder, bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** For a piece that is already there. */
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
