import { untilTooOld } from './backoff.ts';
import type { Failure, RetryRule } from './backoff.ts';
import { deliver } from './delivery.ts';
import type { Outcome } from './delivery.ts';
import { TraceTallyError, tracesInWords, withWhatItMeant } from './errors.ts';
import { beforeProcessEnds, forgetProcessEnd } from './process-end.ts';
import { TraceQueue } from './queue.ts';
import type { Item } from './queue.ts';
import type { Settings } from './settings.ts';
import { Timers } from './timers.ts';
import type { Alarm } from './timers.ts';
import { serialise } from './transport.ts';
import type { Bytes, Transport } from './transport.ts';

/** What became of the traces that were enqueued: the first five add up to them all. */
export interface Stats {
  /** Wait or are under way. */
  queued: number;
  /** Stored by the server. */
  sent: number;
  /** Found no room in the queue, or came after `close()`. */
  dropped: number;
  /** Refused as invalid or too large, by the server or since JSON cannot hold them. */
  rejected: number;
  /** Given up: the server could not be reached for too long, or does not take the key. */
  failed: number;
  /** Tries after the first, of all batches. */
  retries: number;
}

interface Waiter {
  upToSeq: number;
  left: number;
  resolve(): void;
}

/** Collects traces and sends them as batches in the background. */
export class Sender {
  readonly #settings: Settings;
  readonly #transport: Transport;
  readonly #report: (error: unknown) => void;
  readonly #rule: RetryRule;
  readonly #queue: TraceQueue;
  readonly #timers = new Timers();
  readonly #counts = { sent: 0, dropped: 0, rejected: 0, failed: 0, retries: 0 };
  readonly #waiters = new Set<Waiter>();
  readonly #onProcessEnd = (): void => void this.#drain();
  /** What arrived up to here goes out without waiting for more. */
  #dueSeq = 0;
  #tick: Alarm | null = null;
  #stall: Alarm | null = null;
  #drains = 0;
  #underWay = 0;
  #isPumpPlanned = false;
  #isDropTold = false;
  #isOutageTold = false;
  #isClosed = false;
  #closing: Promise<void> | null = null;
  #giveUp = new AbortController();

  constructor(settings: Settings, transport: Transport, report: (error: unknown) => void) {
    this.#settings = settings;
    this.#transport = transport;
    this.#report = report;
    this.#rule = untilTooOld(settings);
    this.#queue = new TraceQueue(settings);
  }

  stats(): Stats {
    return { queued: this.#queue.held, ...this.#counts };
  }

  /** Never throws. The trace is read now: what happens to the object later has no effect. */
  enqueue(trace: unknown): void {
    let bytes: Bytes;
    try {
      bytes = serialise(trace);
    } catch (error) {
      this.#counts.rejected += 1;
      this.#report(error);
      return;
    }
    if (this.#isClosed || !this.#queue.offer(bytes)) {
      this.#drop();
      return;
    }
    beforeProcessEnds(this.#onProcessEnd);
    this.#tick ??= this.#timers.start(this.#settings.flushIntervalMs, () => {
      this.#tick = null;
      this.#sendAllSoFar();
    });
    if (this.#queue.hasFullBatch) this.#planPump();
  }

  /** Resolves when all that was enqueued before is stored or given up. */
  async flush(): Promise<void> {
    if (this.#queue.held === 0) return;
    this.#timers.hold();
    await new Promise<void>((resolve) => {
      this.#waiters.add({ upToSeq: this.#queue.lastSeq, left: this.#queue.held, resolve });
      this.#sendAllSoFar();
    });
    this.#timers.release();
  }

  /** Sends what is there, then takes no more. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await this.#drain();
    this.#isClosed = true;
    this.#isDropTold = false;
    // What arrived during the first drain was accepted, and so it is sent as well.
    await this.#drain();
  }

  /** A flush that gives up when nothing gets through for too long. */
  async #drain(): Promise<void> {
    this.#drains += 1;
    this.#watchForStall();
    await this.flush();
    this.#drains -= 1;
    if (this.#drains === 0) this.#stall?.cancel();
  }

  #watchForStall(): void {
    this.#stall?.cancel();
    this.#stall = this.#timers.start(this.#settings.closeTimeoutMs, () => this.#abandon());
  }

  #abandon(): void {
    const count = this.#queue.held;
    const waiting = this.#queue.takeAll();
    const outcome = { stored: 0, rejected: 0, failed: waiting.length, error: null };
    this.#giveUp.abort();
    this.#giveUp = new AbortController();
    const { closeTimeoutMs } = this.#settings;
    const detail = `${tracesInWords(count)} given up at the end: nothing got through for ${closeTimeoutMs} ms.`;
    this.#report(new TraceTallyError({ code: 'given_up', detail }));
    this.#settle(waiting, outcome);
  }

  #drop(): void {
    this.#counts.dropped += 1;
    // The first of an episode is told; the others are counted. Else a full queue would flood the log.
    if (this.#isDropTold) return;
    this.#isDropTold = true;
    this.#report(
      this.#isClosed
        ? new TraceTallyError({
            code: 'closed',
            detail: 'A trace came after close() and was dropped; more are counted only.',
          })
        : new TraceTallyError({
            code: 'queue_overflow',
            detail: `${tracesInWords(this.#queue.held)} wait already; a trace was dropped, and more are counted only.`,
          }),
    );
  }

  #sendAllSoFar(): void {
    this.#dueSeq = this.#queue.lastSeq;
    this.#planPump();
  }

  /** After the caller's own work, so that `enqueue` costs him no more than to read the trace. */
  #planPump(): void {
    if (this.#isPumpPlanned) return;
    this.#isPumpPlanned = true;
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    this.#isPumpPlanned = false;
    const queue = this.#queue;
    while (
      this.#underWay < this.#settings.maxConcurrentBatches &&
      (queue.hasFullBatch || queue.headSeq <= this.#dueSeq)
    ) {
      this.#underWay += 1;
      void this.#run(queue.takeBatch());
    }
  }

  async #run(items: readonly Item[]): Promise<void> {
    const { signal } = this.#giveUp;
    await deliver(items, {
      transport: this.#transport,
      rule: this.#rule,
      signal,
      sleep: async (ms, failure) => {
        this.#counts.retries += 1;
        this.#tellOfOutage(failure);
        await this.#sleep(ms, signal);
      },
      settle: (settled, outcome) => this.#settle(settled, outcome),
    });
    this.#underWay -= 1;
    this.#planPump();
  }

  /** A wrong address would else show itself only when the first batch is given up. */
  #tellOfOutage({ error, retries }: Failure): void {
    if (this.#isOutageTold || retries < this.#settings.maxRetries) return;
    this.#isOutageTold = true;
    const meaning = `${tracesInWords(this.#queue.held)} wait and are tried again`;
    this.#report(withWhatItMeant(error, meaning));
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const alarm = this.#timers.start(ms, wake);
      signal.addEventListener('abort', wake);
      function wake(): void {
        alarm.cancel();
        signal.removeEventListener('abort', wake);
        resolve();
      }
    });
  }

  #settle(items: readonly Item[], { stored, rejected, failed, error }: Outcome): void {
    this.#counts.sent += stored;
    this.#counts.rejected += rejected;
    this.#counts.failed += failed;
    this.#queue.settle(items);
    if (stored > 0) this.#isOutageTold = false;
    if (this.#queue.isHalfEmpty && !this.#isClosed) this.#isDropTold = false;
    if (this.#drains > 0 && stored > 0) this.#watchForStall();
    if (this.#queue.held === 0) this.#rest();
    for (const waiter of this.#waiters) this.#countDown(waiter, items);
    if (error !== null) this.#report(error);
  }

  #rest(): void {
    this.#tick?.cancel();
    this.#tick = null;
    forgetProcessEnd(this.#onProcessEnd);
  }

  #countDown(waiter: Waiter, items: readonly Item[]): void {
    for (const { seq } of items) if (seq <= waiter.upToSeq) waiter.left -= 1;
    if (waiter.left > 0) return;
    this.#waiters.delete(waiter);
    waiter.resolve();
  }
}
