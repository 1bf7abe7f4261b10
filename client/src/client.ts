/// <reference lib="esnext.disposable" preserve="true" />
import type { Trace, TraceInput } from './api-types.ts';
import { measure } from './measure.ts';
import type { Measured, MeasuredCall, SetAnswer } from './measure.ts';
import { pricesSettled } from './price.ts';
import { AnalyticsReads, TraceReads } from './reads.ts';
import type { ReadOptions } from './reads.ts';
import type { Labels, Recorder } from './recorder.ts';
import { Sender } from './sender.ts';
import type { Stats } from './sender.ts';
import { fits } from './reply-check.ts';
import { traceShape } from './reply-shapes.ts';
import { readSettings } from './settings.ts';
import type { TraceTallyOptions } from './settings.ts';
import { newIdempotencyKey, serialise, Transport } from './transport.ts';
import { vercelMiddleware } from './vercel-ai.ts';
import type { VercelMiddleware } from './vercel-ai.ts';
import { wrapAnthropic } from './wrap-anthropic.ts';
import { wrapOpenAI } from './wrap-openai.ts';

export interface RecordOptions extends ReadOptions {
  /** Makes two calls of `record` one: the same key with the same trace within 24 hours is stored once. Left out, each call has its own. */
  idempotencyKey?: string | undefined;
}

/**
 * Records AI calls in TraceTally and reads them back. One client a process is enough; it opens no connection before its first trace.
 *
 * `new TraceTally()` takes the key and the address from `TRACETALLY_API_KEY` and `TRACETALLY_URL`.
 */
export class TraceTally {
  /** The team's traces. */
  readonly traces: TraceReads;
  /** Sums over the team's traces. */
  readonly analytics: AnalyticsReads;
  readonly #transport: Transport;
  readonly #sender: Sender;
  readonly #recorder: Recorder;

  constructor(options: TraceTallyOptions = {}) {
    const settings = readSettings(options);
    const report = reporter(settings.onError);
    this.#transport = new Transport(settings);
    this.#sender = new Sender(settings, this.#transport, report);
    this.#recorder = { enqueue: (trace) => this.enqueue(trace), report };
    this.traces = new TraceReads(this.#transport);
    this.analytics = new AnalyticsReads(this.#transport);
  }

  /**
   * Stores one trace now and returns it as stored. Failures that may pass are tried again, and however often the request arrives, the
   * trace is stored once. Throws a TraceTallyError if the server refuses it, stays out of reach, or answers with anything but the trace.
   */
  async record(trace: TraceInput, options: RecordOptions = {}): Promise<Trace> {
    const body = await this.#transport.prepare(serialise(trace));
    const { signal, idempotencyKey = newIdempotencyKey() } = options;
    // An object may write itself as other JSON than its fields, and without types a model may be anything.
    const isPlain = typeof trace.model === 'string' && !('toJSON' in trace);
    const model = isPlain ? wellFormed(trace.model) : null;
    const isReply = (reply: unknown): reply is Trace =>
      fits<Trace>(reply, traceShape) && (model === null || reply.model === model);
    const path = '/traces';
    return this.#transport.call({ method: 'POST', path, body, idempotencyKey, signal, isReply });
  }

  /**
   * Puts a trace into the queue, to be sent in the background. Never throws and never waits; what goes wrong is told to `onError`
   * and counted in `stats()`.
   */
  enqueue(trace: TraceInput): void {
    this.#sender.enqueue(trace);
  }

  /** Resolves when all that was enqueued before it is stored or given up. */
  async flush(): Promise<void> {
    // A trace that waits for the price list is not in the queue yet.
    await pricesSettled();
    await this.#sender.flush();
  }

  /**
   * Flushes, and then takes no more traces. A process that ends by itself does not need it; one that calls `process.exit()` or is
   * ended by a signal loses what is still queued without it.
   */
  async close(): Promise<void> {
    await pricesSettled();
    await this.#sender.close();
  }

  /** For `await using`: closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The same OpenAI client, with every call recorded under the labels. Cheap enough to make one for each user. */
  wrapOpenAI<C extends object>(client: C, labels: Labels = {}): C {
    return wrapOpenAI(this.#recorder, client, labels);
  }

  /** The same Anthropic client, with every call recorded under the labels. Cheap enough to make one for each user. */
  wrapAnthropic<C extends object>(client: C, labels: Labels = {}): C {
    return wrapAnthropic(this.#recorder, client, labels);
  }

  /** A middleware for `wrapLanguageModel` of the Vercel AI SDK that records every call to the model. */
  middleware(labels: Labels = {}): VercelMiddleware {
    return vercelMiddleware(this.#recorder, labels);
  }

  /** Runs a call of any other kind and records it: how long it took, whether it threw, and what it told `set`. */
  measure<T>(call: MeasuredCall, run: (set: SetAnswer) => T): Measured<T> {
    return measure(this.#recorder, call, run);
  }

  /** What became of the traces that were enqueued. */
  stats(): Stats {
    return this.#sender.stats();
  }
}

/** As the server stores it: half of a surrogate pair is no character, and becomes U+FFFD. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** The caller's hook, made safe: whatever it does, nothing comes back from it. */
function reporter(onError: (error: Error) => unknown): (error: unknown) => void {
  return (error) => {
    try {
      const told = error instanceof Error ? error : new Error(String(error));
      void Promise.resolve(onError(told)).catch(() => {});
    } catch {
      // There is nobody left to tell.
    }
  };
}
