/** How a client is set up. All of it may be left out where the environment names the key. */
export interface TraceTallyOptions {
  /** The team's API key. Else the variable `TRACETALLY_API_KEY`. */
  apiKey?: string | undefined;
  /** Where the server is, with its base path. Else the variable `TRACETALLY_URL`, else `http://127.0.0.1:4000`. */
  baseUrl?: string | undefined;
  /**
   * Hears of everything that went wrong in the background: traces that were dropped, refused or given up, and an outage once it
   * lasts. Errors never hold prompts or answers. Left out, they are printed as warnings.
   */
  onError?: ((error: Error) => void | Promise<void>) | undefined;
  /** Another `fetch` than the global one. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Whether bodies over 1 KiB are packed; true unless set. */
  gzip?: boolean | undefined;
  /** A batch is sent when it holds so many traces (100), … */
  maxBatchTraces?: number | undefined;
  /** … or so many bytes (1 MiB), … */
  maxBatchBytes?: number | undefined;
  /** … or when its first trace has waited for so long (1,000 ms). */
  flushIntervalMs?: number | undefined;
  /** Batches that may be under way at once (1). With one, traces are stored in the order in which they were enqueued. */
  maxConcurrentBatches?: number | undefined;
  /** What may wait in memory, those under way included (10,000 traces). What comes on top is dropped and counted. */
  maxQueueTraces?: number | undefined;
  /** The same in bytes (64 MiB). */
  maxQueueBytes?: number | undefined;
  /** How often a call that you wait for (`record` and the reads) is tried again (4). */
  maxRetries?: number | undefined;
  /** How long a batch is tried again before it is given up (5 minutes). */
  maxRetryAgeMs?: number | undefined;
  /** The longest first pause before a retry (200 ms); it doubles each time, and the pause is drawn at random below it. */
  retryDelayMs?: number | undefined;
  /** Where the doubling ends (30,000 ms). */
  retryDelayMaxMs?: number | undefined;
  /** How long one try may take (10,000 ms). */
  requestTimeoutMs?: number | undefined;
  /** How long the reply to a read may be, unpacked (256 MiB). A longer one is an error with the code `reply_too_large`. */
  maxReplyBytes?: number | undefined;
  /** How long `close()`, and the end of the process, wait without any batch getting through before they give up (10,000 ms). */
  closeTimeoutMs?: number | undefined;
}

type Numbers = { readonly [name in keyof typeof numberRules]: number };

export interface Settings extends Numbers {
  readonly apiKey: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly onError: (error: Error) => void | Promise<void>;
  readonly fetch: typeof globalThis.fetch;
  readonly gzip: boolean;
}

const hourMs = 3_600_000;
const mib = 1024 * 1024;

/** An idempotency key lives for 24 hours on the server. A batch must never be tried again after that: it could be stored twice. */
export const idempotencyLifeMs = 23 * hourMs;

const numberRules = {
  maxBatchTraces: { usual: 100, min: 1, max: 1_000 },
  maxBatchBytes: { usual: mib, min: 1, max: 20 * mib },
  flushIntervalMs: { usual: 1_000, min: 1, max: hourMs },
  maxConcurrentBatches: { usual: 1, min: 1, max: 64 },
  maxQueueTraces: { usual: 10_000, min: 1, max: 10_000_000 },
  maxQueueBytes: { usual: 64 * mib, min: 1, max: 4_096 * mib },
  maxRetries: { usual: 4, min: 0, max: 100 },
  maxRetryAgeMs: { usual: 300_000, min: 0, max: 12 * hourMs },
  retryDelayMs: { usual: 200, min: 1, max: hourMs },
  retryDelayMaxMs: { usual: 30_000, min: 1, max: hourMs },
  requestTimeoutMs: { usual: 10_000, min: 1, max: hourMs },
  closeTimeoutMs: { usual: 10_000, min: 1, max: hourMs },
  // More would not fit into one string.
  maxReplyBytes: { usual: 256 * mib, min: mib, max: 500 * mib },
};

const otherNames = ['apiKey', 'baseUrl', 'onError', 'fetch', 'gzip'];
const defaultUrl = 'http://127.0.0.1:4000';

/** Checked and frozen. The only reader of the environment. */
export function readSettings(options: TraceTallyOptions = {}): Settings {
  const known = [...otherNames, ...Object.keys(numberRules)];
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new Error(`TraceTally has no setting "${name}". It has: ${known.join(', ')}.`);
    }
  }
  return Object.freeze({
    apiKey: readKey(options.apiKey),
    baseUrl: readUrl(options.baseUrl),
    onError: readFunction('onError', options.onError) ?? warn,
    // Looked up at each call, so that a fetch that is replaced later is used, and never called as somebody's method.
    fetch: readFunction('fetch', options.fetch) ?? ((...args) => globalThis.fetch(...args)),
    gzip: readBoolean('gzip', options.gzip ?? true),
    ...readNumbers(options),
  });
}

function readKey(given: string | undefined): string {
  const key = given ?? environment('TRACETALLY_API_KEY') ?? '';
  if (key === '') {
    throw new Error(
      'TraceTally needs an API key: pass the setting "apiKey" or set the variable TRACETALLY_API_KEY.',
    );
  }
  // The key itself never goes into a message: messages end up in logs.
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key)) {
    throw new Error(
      `The API key of TraceTally (${origin(given, 'apiKey', 'TRACETALLY_API_KEY')}) must be visible ASCII characters, without spaces or line breaks.`,
    );
  }
  return key;
}

function readUrl(given: string | undefined): string {
  const fromEnvironment = environment('TRACETALLY_URL');
  const text = given ?? (fromEnvironment === '' ? undefined : fromEnvironment) ?? defaultUrl;
  const where = origin(given, 'baseUrl', 'TRACETALLY_URL');
  const url = parseUrl(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new Error(`The URL of TraceTally (${where}) must be like ${defaultUrl}.`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error(
      `The URL of TraceTally (${where}) must hold no user, password, "?" or "#": only the server and its base path.`,
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

function parseUrl(text: unknown): URL | null {
  try {
    return typeof text === 'string' ? new URL(text) : null;
  } catch {
    return null;
  }
}

function origin(given: unknown, setting: string, variable: string): string {
  return given === undefined ? `the variable ${variable}` : `the setting "${setting}"`;
}

function readNumbers(options: TraceTallyOptions): Numbers {
  const entries = Object.entries(numberRules).map(([name, { usual, min, max }]) => {
    const value = options[name as keyof Numbers] ?? usual;
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      throw new Error(
        `The setting "${name}" must be a whole number from ${min} to ${max}, not ${String(value)}.`,
      );
    }
    return [name, value];
  });
  return Object.fromEntries(entries) as Numbers;
}

function readBoolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Error(`The setting "${name}" must be true or false.`);
  return value;
}

function readFunction<F>(name: string, value: F | undefined): F | undefined {
  if (value !== undefined && typeof value !== 'function') {
    throw new Error(`The setting "${name}" must be a function.`);
  }
  return value;
}

/** A loss that nobody hears of is worse than a line on the console. */
function warn(error: Error): void {
  // oxlint-disable-next-line no-console
  console.warn(`TraceTally: ${error.message}`);
}

/** Undefined where there is no environment (a browser), or it may not be read (Deno without the permission). */
function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name];
  } catch {
    return undefined;
  }
}
