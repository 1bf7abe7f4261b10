import type { TraceTallyOptions } from './options.ts';
import { cleanName } from './wrap-text.ts';

type Numbers = { readonly [name in keyof typeof numberRules]: number };

export interface Settings extends Numbers {
  /** Null if there is none. */
  readonly apiKey: string | null;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Null if there is none. */
  readonly environment: string | null;
  readonly enabled: boolean;
  readonly sampleRate: number;
  readonly mask: ((text: string) => unknown) | null;
  readonly captureText: boolean;
  readonly onError: (error: Error) => void | Promise<void>;
  readonly fetch: typeof globalThis.fetch;
  readonly gzip: boolean;
}

const hourMs = 3_600_000;
const mib = 1024 * 1024;

/** The server keeps an idempotency key for 24 hours. A batch must not be retried after that: it could be stored twice. */
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
  // A process whose server is down must end within two seconds.
  closeTimeoutMs: { usual: 1_500, min: 1, max: hourMs },
  // A larger reply would not fit into one string.
  maxReplyBytes: { usual: 256 * mib, min: mib, max: 500 * mib },
};

const otherNames = [
  'apiKey',
  'baseUrl',
  'environment',
  'enabled',
  'sampleRate',
  'mask',
  'captureText',
  'onError',
  'fetch',
  'gzip',
];
const defaultUrl = 'http://127.0.0.1:4000';

/** Checked and frozen. The only reader of the environment. */
export function readSettings(options: TraceTallyOptions = {}): Settings {
  const known = [...otherNames, ...Object.keys(numberRules)];
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new Error(`Unknown TraceTally option "${name}". The options are: ${known.join(', ')}.`);
    }
  }
  return Object.freeze({
    apiKey: readKey(options.apiKey),
    baseUrl: readUrl(options.baseUrl),
    environment: readEnvironment(options.environment),
    enabled: readEnabled(options.enabled),
    sampleRate: readSampleRate(options.sampleRate ?? 1),
    mask: readFunction('mask', options.mask) ?? null,
    captureText: readBoolean('captureText', options.captureText ?? true),
    onError: readFunction('onError', options.onError) ?? warn,
    // Looked up at each call: a fetch that is replaced later is used, and it is never called as a method of the settings.
    fetch: readFunction('fetch', options.fetch) ?? ((...args) => globalThis.fetch(...args)),
    gzip: readBoolean('gzip', options.gzip ?? true),
    ...readNumbers(options),
  });
}

function readKey(given: string | undefined): string | null {
  const key = given ?? environment('TRACETALLY_API_KEY') ?? '';
  if (key === '') return null;
  // The message must not contain the key: messages end up in logs.
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key)) {
    const where = origin(given, 'apiKey', 'TRACETALLY_API_KEY');
    throw new Error(
      `The TraceTally API key (${where}) must consist of visible ASCII characters, without spaces or line breaks.`,
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
    throw new Error(`The TraceTally URL (${where}) must be an HTTP URL such as ${defaultUrl}.`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error(
      `The TraceTally URL (${where}) must not contain a user, a password, "?" or "#", only the server and its base path.`,
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

function readEnvironment(given: string | undefined): string | null {
  const name = given ?? environment('TRACETALLY_ENVIRONMENT') ?? '';
  if (name === '') return null;
  if (cleanName(name) !== name) {
    const where = origin(given, 'environment', 'TRACETALLY_ENVIRONMENT');
    throw new Error(
      `The name of the environment (${where}) must be a string of at most 255 characters, without control characters.`,
    );
  }
  return name;
}

function parseUrl(text: unknown): URL | null {
  try {
    return typeof text === 'string' ? new URL(text) : null;
  } catch {
    return null;
  }
}

function origin(given: unknown, option: string, variable: string): string {
  return given === undefined ? `environment variable ${variable}` : `option "${option}"`;
}

function readEnabled(given: boolean | undefined): boolean {
  if (given !== undefined) return readBoolean('enabled', given);
  const text = (environment('TRACETALLY_ENABLED') ?? '').trim().toLowerCase();
  if (text === '' || text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw new Error('The environment variable TRACETALLY_ENABLED must be true or false.');
}

function readSampleRate(value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) {
    throw new Error(
      `The option "sampleRate" must be a number from 0 to 1, not ${inMessage(value)}.`,
    );
  }
  return value;
}

function readNumbers(options: TraceTallyOptions): Numbers {
  const entries = Object.entries(numberRules).map(([name, { usual, min, max }]) => {
    const value = options[name as keyof Numbers] ?? usual;
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      throw new Error(
        `The option "${name}" must be a whole number from ${min} to ${max}, not ${inMessage(value)}.`,
      );
    }
    return [name, value];
  });
  return Object.fromEntries(entries) as Numbers;
}

/** Numbers are shown; any other value could be a secret in the wrong place. */
function inMessage(value: unknown): string {
  return typeof value === 'number' ? String(value) : `a ${typeof value}`;
}

function readBoolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Error(`The option "${name}" must be true or false.`);
  return value;
}

function readFunction<F>(name: string, value: F | undefined): F | undefined {
  if (value !== undefined && typeof value !== 'function') {
    throw new Error(`The option "${name}" must be a function.`);
  }
  return value;
}

/** The default for `onError`, so that problems are noticed. */
function warn(error: Error): void {
  // oxlint-disable-next-line no-console
  console.warn(`TraceTally: ${error.message}`);
}

/** Undefined if there is no environment (a browser) or it may not be read (Deno without the permission). */
function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name];
  } catch {
    return undefined;
  }
}
