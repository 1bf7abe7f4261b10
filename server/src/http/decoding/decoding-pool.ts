import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { FairQueue } from '../../core/fair-queue.ts';
import { CallerLeft, Failure, messageOf } from '../../errors.ts';
import { moduleAt } from '../../installation.ts';
import { limits } from '../../limits.ts';
import type { DecodeJob, DecodeReply, DecodedReply } from './decode-job.ts';

/**
 * Decodes bodies on threads of their own. Teams take turns, and one team never uses all threads. A body that takes too much time or
 * memory fails alone: its thread is ended, and the next body gets a new one.
 */
export interface DecodingPool {
  /**
   * Takes the job when it is the team's turn; null if it is no longer wanted. The bytes of the job are moved to the thread. Rejects with
   * a `Failure`.
   */
  decode(teamId: string, take: () => DecodeJob | null): Promise<DecodedReply>;
  close(): Promise<void>;
}

export interface DecodingOptions {
  threadsMax?: number;
  cpuMsMax?: number;
  wallMsMax?: number;
  /** Another module in place of the real one, for tests. */
  module?: URL;
}

/** At least two, so that one team's bodies never keep another's waiting. */
const threadsByDefault = Math.max(2, Math.min(4, availableParallelism()));

export function openDecodingPool({
  threadsMax = threadsByDefault,
  cpuMsMax = limits.decodeCpuMsMax,
  wallMsMax = limits.decodeWallMsMax,
  module = moduleAt('http/decoding/decoding-thread'),
}: DecodingOptions = {}): DecodingPool {
  const queue = new FairQueue(
    {
      runningMax: threadsMax,
      teamRunningMax: Math.max(1, threadsMax - 1),
      teamWaitingMax: limits.decodesWaitingMax,
    },
    () => new Failure('queue_full'),
  );
  const threads = new Set<DecodingThread>();
  const idle: DecodingThread[] = [];
  let isClosed = false;

  /** The one that was used last: its code and memory are warm. */
  function takeThread(): DecodingThread {
    const free = idle.pop();
    if (free) return free;
    const thread = new DecodingThread(module, () => {
      threads.delete(thread);
      const at = idle.indexOf(thread);
      if (at !== -1) idle.splice(at, 1);
    });
    threads.add(thread);
    return thread;
  }

  return {
    decode: (teamId, take) =>
      queue.run(teamId, async () => {
        if (isClosed) throw new Failure('store_unavailable', { cause: 'the server is stopping' });
        const job = take();
        if (job === null) throw new CallerLeft();
        const thread = takeThread();
        try {
          return await thread.run(job, { cpuMsMax, wallMsMax });
        } finally {
          if (!thread.hasEnded) idle.push(thread);
        }
      }),
    async close() {
      isClosed = true;
      await Promise.all([...threads].map((thread) => thread.end()));
    },
  };
}

interface JobBounds {
  cpuMsMax: number;
  wallMsMax: number;
}

/** One thread, which decodes one body at a time. */
class DecodingThread {
  readonly #worker: Worker;
  readonly #onEnd: () => void;
  /** The operating system's id of the thread; null until the thread has reported it, or if there is none. */
  #id: number | null = null;
  #settle: ((reply: DecodeReply) => void) | null = null;
  /** The own prices that it has. */
  #pricesNo: number | null = null;
  hasEnded = false;

  constructor(module: URL, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#worker = new Worker(module, { resourceLimits: threadLimits });
    this.#worker.unref();
    this.#worker.on('message', (message: DecodeReply | Ready) => {
      if (message.kind === 'ready') this.#id = message.threadId;
      else this.#finish(message);
    });
    this.#worker.on('error', (error) => this.#noteEnd(replyToError(error as Error)));
    this.#worker.on('exit', () => this.#noteEnd(threadEnded));
  }

  async run(job: DecodeJob, bounds: JobBounds): Promise<DecodedReply> {
    const { promise, resolve } = Promise.withResolvers<DecodeReply>();
    this.#settle = resolve;
    this.#worker.ref();
    const watch = this.#watch(bounds);
    let reply: DecodeReply;
    try {
      this.#send(job);
      reply = await promise;
    } finally {
      this.#settle = null;
      clearInterval(watch);
      this.#worker.unref();
    }
    if (reply.kind === 'decoded') return reply;
    throw new Failure(reply.code, reply);
  }

  /** Its work is lost. */
  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #send(job: DecodeJob): void {
    const { prices } = job;
    const isKnown = prices !== null && prices.no === this.#pricesNo;
    if (prices !== null) this.#pricesNo = prices.no;
    const sent = isKnown ? { ...job, prices: { no: prices.no, entries: null } } : job;
    this.#worker.postMessage(sent, [job.bytes.buffer]);
  }

  /** Ends the thread if the body takes too long. */
  #watch({ cpuMsMax, wallMsMax }: JobBounds): NodeJS.Timeout {
    const startMs = performance.now();
    let startCpuMs = this.#cpuMs();
    return setInterval(() => {
      // It was just started: loading its code does not count.
      startCpuMs ??= this.#cpuMs();
      const cpuMs = (this.#cpuMs() ?? 0) - (startCpuMs ?? 0);
      const wallMs = performance.now() - startMs;
      if (cpuMs <= cpuMsMax && wallMs <= wallMsMax) return;
      this.#noteEnd(cpuMs > cpuMsMax ? tooComplex : tooBusy);
      void this.end();
    }, watchIntervalMs);
  }

  /** The CPU time of the thread, read from outside: the thread itself does not answer while it is busy. */
  #cpuMs(): number | null {
    if (this.#id === null) return null;
    try {
      const stat = readFileSync(`/proc/self/task/${this.#id}/stat`, 'latin1');
      const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14);
      return (Number(user) + Number(system)) * msPerTick;
    } catch {
      return null;
    }
  }

  #finish(reply: DecodeReply): void {
    const settle = this.#settle;
    this.#settle = null;
    settle?.(reply);
  }

  #noteEnd(reply: DecodeReply): void {
    if (!this.hasEnded) this.#onEnd();
    this.hasEnded = true;
    this.#finish(reply);
  }
}

/** What a thread sends when it can take its first job. */
interface Ready {
  kind: 'ready';
  threadId: number | null;
}

/** How often the CPU time of a busy thread is read. */
const watchIntervalMs = 50;

/** The unit in which Linux counts CPU time. */
const msPerTick = 10;

/** Enough for the largest body that the bounds of JSON allow. */
const threadLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 24 };

const tooComplex: DecodeReply = { kind: 'failed', code: 'body_too_complex' };
/** It may not be the body's fault, so the caller may try again. */
const tooBusy: DecodeReply = {
  kind: 'failed',
  code: 'queue_full',
  say: 'The server was too busy to read this body in time. Nothing in this request was stored.',
};
const threadEnded: DecodeReply = {
  kind: 'failed',
  code: 'internal',
  cause: 'the decoding thread has ended',
};

function replyToError(error: Error): DecodeReply {
  const isOutOfMemory = (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY';
  if (isOutOfMemory) return tooComplex;
  return { kind: 'failed', code: 'internal', cause: messageOf(error) };
}
