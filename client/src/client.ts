/// <reference lib="esnext.disposable" preserve="true" />
import type { Trace, TraceInput } from './api-types.ts';
import { noApiKey } from './errors.ts';
import { measure, runUnmeasured } from './measure.ts';
import type { Measured, MeasuredCall, SetAnswer } from './measure.ts';
import type { TraceTallyOptions } from './options.ts';
import { AnalyticsReads, TraceReads } from './reads.ts';
import type { ReadOptions } from './reads.ts';
import type { Labels, Recorder } from './recorder.ts';
import { fits } from './reply-check.ts';
import { traceShape } from './reply-shapes.ts';
import { createReporter } from './reporter.ts';
import { Sender } from './sender.ts';
import type { Stats } from './sender.ts';
import { createSerialise } from './trace-serialiser.ts';
import type { Serialise } from './trace-serialiser.ts';
import { readSettings } from './settings.ts';
import { newIdempotencyKey, Transport } from './transport.ts';
import { passThroughMiddleware, vercelMiddleware } from './vercel-ai.ts';
import type { VercelMiddleware } from './vercel-ai.ts';
import { wrapAnthropic } from './wrap-anthropic.ts';
import { wrapOpenAI } from './wrap-openai.ts';

export interface RecordOptions extends ReadOptions {
  /** Calls to `record` with the same key and the same trace within 24 hours store one trace. Default: a new key per call. */
  idempotencyKey?: string | undefined;
}

/**
 * Records AI calls in TraceTally and reads them back. One client per process is enough. It opens no connection before its first trace.
 *
 * `new TraceTally()` reads the API key and the URL from the environment variables `TRACETALLY_API_KEY` and `TRACETALLY_URL`. Without a
 * key it warns once and records nothing: wrapped clients call the provider as usual, and only the reads fail.
 */
export class TraceTally {
  /** The team's traces. */
  readonly traces: TraceReads;
  /** Totals over the team's traces. */
  readonly analytics: AnalyticsReads;
  readonly #isRecording: boolean;
  readonly #sampleRate: number;
  readonly #serialise: Serialise;
  readonly #transport: Transport;
  readonly #sender: Sender;
  readonly #recorder: Recorder;

  constructor(options: TraceTallyOptions = {}) {
    const settings = readSettings(options);
    const { enabled, apiKey, sampleRate, onError } = settings;
    const reporter = createReporter(onError);
    this.#isRecording = enabled && apiKey !== null;
    this.#sampleRate = sampleRate;
    this.#serialise = createSerialise(settings, reporter);
    this.#transport = new Transport(settings);
    this.#sender = new Sender(settings, this.#transport, this.#serialise, reporter.report);
    this.#recorder = { ...reporter, enqueue: (trace) => this.enqueue(trace) };
    this.traces = new TraceReads(this.#transport);
    this.analytics = new AnalyticsReads(this.#transport);
    if (enabled && apiKey === null) {
      reporter.reportOnce(noApiKey('AI calls are not recorded because there is no API key.'));
    }
  }

  /**
   * Stores one trace now and returns it as stored. Temporary failures are retried. The trace is stored once, no matter how often
   * the request arrives. Throws a TraceTallyError if the server rejects the trace, cannot be reached, or replies with anything but the trace.
   * Returns null, and sends nothing, if the client is disabled or has no API key.
   */
  async record(trace: TraceInput, options: RecordOptions = {}): Promise<Trace | null> {
    if (!this.#isRecording) return null;
    const body = await this.#transport.prepare(this.#serialise(trace));
    const { signal, idempotencyKey = newIdempotencyKey() } = options;
    // An object with toJSON may be sent with other fields, and in JavaScript the model may be anything.
    const isPlain = typeof trace.model === 'string' && !('toJSON' in trace);
    const model = isPlain ? wellFormed(trace.model) : null;
    const isReply = (reply: unknown): reply is Trace =>
      fits<Trace>(reply, traceShape) && (model === null || reply.model === model);
    const path = '/traces?price_missing_costs=true';
    return this.#transport.call({ method: 'POST', path, body, idempotencyKey, signal, isReply });
  }

  /**
   * Puts a trace into the queue, to be sent in the background. Never throws and never waits; problems are reported to `onError` and
   * counted in `stats()`.
   */
  enqueue(trace: TraceInput): void {
    if (this.#isRecording && Math.random() < this.#sampleRate) this.#sender.enqueue(trace);
  }

  /** Resolves when every trace that was enqueued before is stored, or when the client has given up on it. */
  async flush(): Promise<void> {
    await this.#sender.flush();
  }

  /**
   * Sends what is queued, then accepts no more traces. A process that ends normally does not need to call it. Without it,
   * `process.exit()` and signals lose what is still queued.
   */
  async close(): Promise<void> {
    await this.#sender.close();
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The same OpenAI client, with every call recorded under the labels. Cheap enough to call for each user. */
  wrapOpenAI<C extends object>(client: C, labels: Labels = {}): C {
    return this.#isRecording ? wrapOpenAI(this.#recorder, client, labels) : client;
  }

  /** The same Anthropic client, with every call recorded under the labels. Cheap enough to call for each user. */
  wrapAnthropic<C extends object>(client: C, labels: Labels = {}): C {
    return this.#isRecording ? wrapAnthropic(this.#recorder, client, labels) : client;
  }

  /** A middleware for `wrapLanguageModel` of the Vercel AI SDK (versions 4 to 7) that records every call to the model. */
  middleware(labels: Labels = {}): VercelMiddleware {
    return this.#isRecording ? vercelMiddleware(this.#recorder, labels) : passThroughMiddleware;
  }

  /** Runs any function and records it as one call: its duration, whether it threw, and what it passed to `set`. */
  measure<T>(call: MeasuredCall, run: (set: SetAnswer) => T): Measured<T> {
    return this.#isRecording ? measure(this.#recorder, call, run) : runUnmeasured(run);
  }

  /** Counts of the enqueued traces by outcome. */
  stats(): Stats {
    return this.#sender.stats();
  }
}

/** As the server stores it: an unpaired surrogate becomes U+FFFD. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
