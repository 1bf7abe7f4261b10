import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FairShare } from '../core/fair-share.ts';
import type { Holder } from '../core/fair-share.ts';
import { Failure, fail } from '../errors.ts';
import { limits } from '../limits.ts';
import { callerOf } from './auth.ts';
import { LoopTurns } from './loop-turns.ts';
import { jsonContentType } from './record-json.ts';

/**
 * Bounds the memory of replies that wait for their peers. A large reply goes out in slices as the peer takes them and counts
 * until it has left; what waits is shared fairly between teams and keys; a peer that does not read is disconnected.
 */
export interface ReplyBudget {
  /**
   * A hook in front of reads that may be large: 503 for a caller whose unread replies fill its share. Many of them at once are
   * spread over several turns of the event loop.
   */
  admit(request: FastifyRequest, reply: FastifyReply, done: () => void): void;
  /** Sends a JSON text. Fails with 503 if it is large and past the caller's share. */
  send(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply;
  /** Sends the JSON text of what was just stored. It counts and is never refused: the body that it answers was admitted. */
  sendStored(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply;
  /** Sends a JSON text in pieces, each made when the peer has taken the one before it. */
  stream(request: FastifyRequest, reply: FastifyReply, pieces: AsyncIterable<string>): FastifyReply;
  close(): void;
}

export function openReplyBudget(budgetBytes: number): ReplyBudget {
  const share = new FairShare(budgetBytes);
  const sendings = new Set<Sending>();
  const turns = new LoopTurns();
  const sweep = setInterval(dropStalled, limits.timeoutCheckIntervalMs).unref();
  let onRoom = Promise.withResolvers<void>();

  function open(request: FastifyRequest, reply: FastifyReply): Sending {
    const sending = new Sending(share, callerOf(request), () => {
      onRoom.resolve();
      onRoom = Promise.withResolvers<void>();
    });
    sendings.add(sending);
    reply.raw.once('close', () => {
      sendings.delete(sending);
      sending.end();
    });
    sending.drop = () => void reply.raw.destroy();
    return sending;
  }

  function dropStalled(): void {
    const latestMs = performance.now() - limits.replyStallMsMax;
    for (const { offeredMs, drop } of sendings) if (offeredMs < latestMs) drop();
  }

  /** Until the caller's share has room, or the peer has gone. Those that hold the room make progress or are dropped. */
  async function roomFor(sending: Sending): Promise<void> {
    while (!sending.hasRoom) {
      if (sending.hasEnded) throw new Error('the peer has gone');
      await onRoom.promise;
    }
  }

  async function* piecesFor(sending: Sending, pieces: AsyncIterable<string>) {
    for await (const piece of pieces) {
      sending.hold(Buffer.byteLength(piece));
      yield* slicesFor(sending, piece);
      await roomFor(sending);
    }
  }

  return {
    admit(request, _reply, done) {
      const caller = callerOf(request);
      if (!share.hasRoom(caller)) fail('reads_busy');
      turns.enter(caller.teamId, done);
    },
    send(request, reply, text) {
      if (isSmall(text) || request.method === 'HEAD') return sendWhole(reply, text);
      const sending = open(request, reply);
      if (!sending.tryHold(Buffer.byteLength(text))) throw new Failure('reads_busy');
      return sendSlices(reply, sending, text);
    },
    sendStored(request, reply, text) {
      if (isSmall(text)) return sendWhole(reply, text);
      const sending = open(request, reply);
      sending.hold(Buffer.byteLength(text));
      return sendSlices(reply, sending, text);
    },
    stream(request, reply, pieces) {
      reply.type(jsonContentType);
      // The body of a HEAD is never sent, so nothing of it is made.
      const body = request.method === 'HEAD' ? [] : piecesFor(open(request, reply), pieces);
      return reply.send(Readable.from(body));
    },
    close() {
      clearInterval(sweep);
    },
  };
}

function isSmall(text: string): boolean {
  return text.length <= limits.streamSliceChars;
}

function sendWhole(reply: FastifyReply, text: string): FastifyReply {
  return reply.type(jsonContentType).send(text);
}

function sendSlices(reply: FastifyReply, sending: Sending, text: string): FastifyReply {
  return reply
    .type(jsonContentType)
    .header('content-length', sending.bytes)
    .send(Readable.from(slicesFor(sending, text)));
}

/** One large reply on its way. */
class Sending {
  /** When the slice was offered that the peer has not taken yet; infinity if there is none. */
  offeredMs = Infinity;
  hasEnded = false;
  drop: () => void = () => {};
  readonly #share: FairShare;
  readonly #holder: Holder;
  readonly #onRoom: () => void;
  #bytes = 0;

  /** What it holds now. */
  get bytes(): number {
    return this.#bytes;
  }

  constructor(share: FairShare, holder: Holder, onRoom: () => void) {
    this.#share = share;
    this.#holder = holder;
    this.#onRoom = onRoom;
  }

  get hasRoom(): boolean {
    return this.#share.hasRoom(this.#holder);
  }

  /** A caller that holds nothing else may have one reply of any size. */
  tryHold(bytes: number): boolean {
    if (this.#share.heldBy(this.#holder.teamId) > 0) {
      if (!this.#share.tryTake(this.#holder, bytes)) return false;
      this.#bytes += bytes;
      return true;
    }
    this.hold(bytes);
    return true;
  }

  hold(bytes: number): void {
    if (this.hasEnded) return;
    this.#share.take(this.#holder, bytes);
    this.#bytes += bytes;
  }

  letGo(): void {
    if (this.#bytes === 0) return;
    this.#share.give(this.#holder, this.#bytes);
    this.#bytes = 0;
    this.#onRoom();
  }

  end(): void {
    this.hasEnded = true;
    this.letGo();
    this.#onRoom();
  }
}

function* slicesFor(sending: Sending, text: string): Generator<string> {
  for (const slice of slicesOf(text)) {
    sending.offeredMs = performance.now();
    yield slice;
    sending.offeredMs = Infinity;
  }
  sending.letGo();
}

function* slicesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    let end = at + limits.streamSliceChars;
    // A surrogate pair must stay together: each half alone could not be written as UTF-8.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    yield text.slice(at, end);
    at = end;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
