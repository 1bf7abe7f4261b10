import { untilTooOld } from './backoff.ts';
import type { Failure, RetryRule } from './backoff.ts';
import { deliver } from './delivery.ts';
import type { Outcome } from './delivery.ts';
import { TraceTallyError, tracesInWords, withConsequence } from './errors.ts';
import { beforeProcessEnds, forgetProcessEnd } from './process-end.ts';
import { TraceQueue } from './queue.ts';
import type { Item } from './queue.ts';
import type { Serialise } from './trace-serialiser.ts';
import type { Settings } from './settings.ts';
import { Timers } from './timers.ts';
import type { Alarm } from './timers.ts';
import type { Bytes, Transport } from './transport.ts';

/** Counts of the enqueued traces by outcome. The first five add up to all of them. */
export interface Stats {
  /** Waiting or in flight. */
  queued: number;
  /** Stored by the server. */
  sent: number;
  /** Not accepted: the queue was full or the client was closed. */
  dropped: number;
  /** Rejected by the server as invalid or too large, or not convertible to JSON. */
  rejected: number;
  /** The client gave up on them: the server could not be reached for too long, or did not accept the API key. */
  failed: number;
  /** Retries of all batches. */
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
  readonly #serialise: Serialise;
  readonly #report: (error: unknown) => void;
  readonly #rule: RetryRule;
  readonly #queue: TraceQueue;
  readonly #timers = new Timers();
  readonly #counts = { sent: 0, dropped: 0, rejected: 0, failed: 0, retries: 0 };
  readonly #waiters = new Set<Waiter>();
  readonly #onProcessEnd = (): void => void this.#drain();
  /** Traces up to this number are sent without waiting for more. */
  #dueSeq = 0;
  #tick: Alarm | null = null;
  #stall: Alarm | null = null;
  #drains = 0;
  #underWay = 0;
  #isPumpPlanned = false;
  #isDropReported = false;
  #isOutageReported = false;
  #isClosed = false;
  #closing: Promise<void> | null = null;
  #giveUp = new AbortController();
  /** Why the last attempt failed, until one succeeds. */
  #lastFailure: TraceTallyError | null = null;

  constructor(
    settings: Settings,
    transport: Transport,
    serialise: Serialise,
    report: (error: unknown) => void,
  ) {
    this.#settings = settings;
    this.#transport = transport;
    this.#serialise = serialise;
    this.#report = report;
    this.#rule = untilTooOld(settings);
    this.#queue = new TraceQueue(settings);
  }

  stats(): Stats {
    return { queued: this.#queue.held, ...this.#counts };
  }

  /** Never throws. The trace is read now: later changes to the object have no effect. */
  enqueue(trace: unknown): void {
    let bytes: Bytes;
    try {
      bytes = this.#serialise(trace);
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

  /** Resolves when every trace that was enqueued before is stored, or when the client has given up on it. */
  async flush(): Promise<void> {
    if (this.#queue.held === 0) return;
    this.#timers.hold();
    await new Promise<void>((resolve) => {
      this.#waiters.add({ upToSeq: this.#queue.lastSeq, left: this.#queue.held, resolve });
      this.#sendAllSoFar();
    });
    this.#timers.release();
  }

  /** Sends what is queued, then accepts no more. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await this.#drain();
    this.#isClosed = true;
    this.#isDropReported = false;
    // Traces that were accepted during the first drain are sent as well.
    await this.#drain();
  }

  /** A flush that drops what is queued when no batch gets through for too long. */
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
    const reason = this.#lastFailure?.detail ?? 'The server did not reply.';
    const dropped = `Dropped ${tracesInWords(count)} at shutdown`;
    const detail = `${dropped}: nothing could be sent for ${closeTimeoutMs} ms. ${reason}`;
    this.#report(new TraceTallyError({ code: 'given_up', detail }));
    this.#settle(waiting, outcome);
  }

  #drop(): void {
    this.#counts.dropped += 1;
    // Only the first drop of an episode is reported; otherwise a full queue would flood the log.
    if (this.#isDropReported) return;
    this.#isDropReported = true;
    this.#report(
      this.#isClosed
        ? new TraceTallyError({
            code: 'closed',
            detail:
              'A trace was dropped because the client is closed. Further drops are only counted.',
          })
        : new TraceTallyError({
            code: 'queue_overflow',
            detail: `A trace was dropped because the queue is full (${tracesInWords(this.#queue.held)}). Further drops are only counted.`,
          }),
    );
  }

  #sendAllSoFar(): void {
    this.#dueSeq = this.#queue.lastSeq;
    this.#planPump();
  }

  /** Runs after the caller's own code, so that `enqueue` takes no longer than reading the trace. */
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
        this.#lastFailure = failure.error;
        this.#reportOutage(failure);
        await this.#sleep(ms, signal);
      },
      startTimer: (ms, run) => this.#timers.start(ms, run),
      settle: (settled, outcome) => this.#settle(settled, outcome),
    });
    this.#underWay -= 1;
    this.#planPump();
  }

  /** Otherwise a wrong address would be reported only when the client gives up on the first batch. A shutdown reports once, at its end. */
  #reportOutage({ error, retries }: Failure): void {
    if (this.#isOutageReported || this.#drains > 0 || retries < this.#settings.maxRetries) return;
    this.#isOutageReported = true;
    const consequence = `Cannot send ${tracesInWords(this.#queue.held)}; retrying`;
    this.#report(withConsequence(error, consequence));
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
    if (stored > 0) {
      this.#isOutageReported = false;
      this.#lastFailure = null;
    }
    if (this.#queue.isHalfEmpty && !this.#isClosed) this.#isDropReported = false;
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
