/** Options of the client. All of them are optional if the API key is in the environment. Defaults are in parentheses. */
export interface TraceTallyOptions {
  /** The team's API key. Default: the environment variable `TRACETALLY_API_KEY`. Without a key the client warns once and records nothing. */
  apiKey?: string | undefined;
  /** The server's URL with its base path. Default: the environment variable `TRACETALLY_URL`, then `http://127.0.0.1:4000`. */
  baseUrl?: string | undefined;
  /** Where the app runs, such as `production`: the `environment` of every trace that has none. Default: the environment variable `TRACETALLY_ENVIRONMENT`. */
  environment?: string | undefined;
  /** `false` records nothing, without a warning. Default: the environment variable `TRACETALLY_ENABLED`, then `true`. */
  enabled?: boolean | undefined;
  /**
   * The share of calls to record, from 0 to 1 (1). The wrappers, `measure` and `enqueue` decide at random, once per call.
   * `record` always sends its trace.
   */
  sampleRate?: number | undefined;
  /**
   * Rewrites `input`, `output` and `error_message` of every trace before it leaves the process, for example to remove personal data.
   * If it throws or does not return a string, the text is replaced by `[mask failed]`; the original text is never sent.
   */
  mask?: ((text: string) => string) | undefined;
  /** `false` leaves out `input` and `output` of every trace (true). */
  captureText?: boolean | undefined;
  /**
   * Called with every background problem: traces that were dropped or rejected or that the client gave up on, and lasting outages. The
   * errors never contain prompts or answers. Default: print a warning.
   */
  onError?: ((error: Error) => void | Promise<void>) | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Compress request bodies over 1 KiB (true). */
  gzip?: boolean | undefined;
  /** A batch is sent when it has this many traces (100), … */
  maxBatchTraces?: number | undefined;
  /** … or this many bytes (1 MiB), … */
  maxBatchBytes?: number | undefined;
  /** … or when its first trace has waited this long (1,000 ms). */
  flushIntervalMs?: number | undefined;
  /** Batches that may be in flight at once (1). With 1, traces are stored in the order in which they were enqueued. */
  maxConcurrentBatches?: number | undefined;
  /** Traces that may be held in memory, including those in flight (10,000). Further traces are dropped and counted. */
  maxQueueTraces?: number | undefined;
  /** The same limit in bytes (64 MiB). */
  maxQueueBytes?: number | undefined;
  /** How many times calls that you await (`record` and the reads) are retried (4). */
  maxRetries?: number | undefined;
  /** How long a batch is retried before the client gives up on it (300,000 ms). */
  maxRetryAgeMs?: number | undefined;
  /** Upper bound of the first retry delay (200 ms). It doubles with each retry; the delay is random below the bound. */
  retryDelayMs?: number | undefined;
  /** The largest upper bound of a retry delay (30,000 ms). */
  retryDelayMaxMs?: number | undefined;
  /** Timeout of one request (10,000 ms). */
  requestTimeoutMs?: number | undefined;
  /** Maximum size of the reply to a read, decompressed (256 MiB). A larger reply is an error with the code `reply_too_large`. */
  maxReplyBytes?: number | undefined;
  /** How long `close()` and the end of the process wait while no batch gets through, before they drop what is queued (1,500 ms). */
  closeTimeoutMs?: number | undefined;
}
