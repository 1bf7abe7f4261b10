import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairShare } from '../core/fair-share.ts';
import type { Tally } from '../core/query.ts';
import { Failure } from '../errors.ts';
import { limits } from '../limits.ts';
import type { TallyList } from './trace-reader.ts';

/** A driver's read of a list of names that is too long to be in memory at once. */
export interface WideRead {
  /** The next groups in order; empty at the end. */
  next(): Promise<readonly Tally[]>;
  /** Releases the resources of the read. */
  close(): void;
}

/**
 * Bounds the number of open wide reads, shared fairly between teams, and the time that each may take: a read uses resources of the
 * store until the peer has read its reply.
 */
export class WideReads {
  readonly #share: FairShare;

  constructor(readsMax: number) {
    this.#share = new FairShare(readsMax);
  }

  async open(teamId: string, start: () => Promise<WideRead>): Promise<TallyList> {
    const holder = { teamId, keyId: null };
    if (!this.#share.tryTake(holder, 1)) throw new Failure('reads_busy');
    let read: WideRead | null = null;
    let isClosed = false;
    const close = (): void => {
      if (isClosed) return;
      isClosed = true;
      clearTimeout(timer);
      this.#share.give(holder, 1);
      read?.close();
    };
    const timer = setTimeout(close, limits.wideReadMsMax).unref();
    try {
      const opened = await start();
      read = opened;
      // The time limit passed while it was being opened.
      if (isClosed) {
        opened.close();
        throw tookTooLong();
      }
      return { first: await opened.next(), rest: { close, [Symbol.asyncIterator]: () => walk() } };
    } catch (error) {
      close();
      throw error;
    }

    async function* walk(): AsyncGenerator<readonly Tally[]> {
      try {
        for (;;) {
          if (isClosed || !read) throw tookTooLong();
          // Chunks that arrive faster than they are sent would otherwise keep the event loop from all other requests.
          await nextTurn();
          const chunk = await read.next();
          if (chunk.length === 0) return;
          yield chunk;
        }
      } finally {
        close();
      }
    }
  }
}

function tookTooLong(): Failure {
  return new Failure('reads_busy', { cause: 'the read took too long' });
}
