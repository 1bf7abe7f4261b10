import { parseRetryAfter, whileWaitedFor, withRetries } from './backoff.ts';
import { errorOfReply, noApiKey, TraceTallyError } from './errors.ts';
import { readReply } from './reply-body.ts';
import type { Settings } from './settings.ts';
import { startTimer } from './timers.ts';
import type { StartTimer } from './timers.ts';

export type Bytes = Uint8Array<ArrayBuffer>;

/** A request body that can be sent any number of times. */
export interface Body {
  bytes: Bytes;
  packed: boolean;
  /** The size before compression. */
  plainBytes: number;
}

export interface Call<T> {
  method: 'GET' | 'POST';
  /** Below the base URL, with its query. */
  path: string;
  body?: Body;
  idempotencyKey?: string;
  signal?: AbortSignal | undefined;
  /** Starts the timer of the timeout. Default: one that keeps the process alive. */
  startTimer?: StartTimer;
  /** Whether the JSON is a reply to this call; anything else is an error with the code `bad_reply`. */
  isReply(reply: unknown): reply is T;
}

/** A smaller body fits into one packet, so compression saves nothing. */
const packBytesMin = 1024;
/** The largest error reply, and the most that the server adds to a write: ids and times of 1,000 traces, or why each was rejected. */
const replyBytesMax = 4 * 1024 * 1024;
const encoder = new TextEncoder();

/** Requests to one server with one key. Every failure is a TraceTallyError. */
export class Transport {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Compresses once for all attempts. */
  async prepare(bytes: Bytes): Promise<Body> {
    const { gzip } = this.#settings;
    const plain = { bytes, packed: false, plainBytes: bytes.length };
    if (!gzip || bytes.length <= packBytesMin || typeof CompressionStream === 'undefined') {
      return plain;
    }
    try {
      const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'));
      const packed = new Uint8Array(await new Response(stream).arrayBuffer());
      return { bytes: packed, packed: true, plainBytes: bytes.length };
    } catch {
      // Compression is an optimisation; its failure must not lose a trace.
      return plain;
    }
  }

  /** Retries a few times, for calls that the caller awaits. */
  async call<T>(call: Call<T>): Promise<T> {
    return withRetries(
      () => this.try(call),
      whileWaitedFor(this.#settings),
      (ms) => pause(ms, call.signal),
    );
  }

  /** One request; returns the JSON of its reply. */
  async try<T>(call: Call<T>): Promise<T> {
    const { requestTimeoutMs } = this.#settings;
    const cut = new AbortController();
    let stop: (error: TraceTallyError) => void = () => {};
    // The race ends the wait even if a custom fetch ignores the signal.
    const stopped = new Promise<never>((_resolve, reject) => (stop = reject));
    const start = call.startTimer ?? startTimer;
    const timer = start(requestTimeoutMs, () => stop(noReply(requestTimeoutMs)));
    const onAbort = (): void => stop(aborted());
    call.signal?.addEventListener('abort', onAbort);
    try {
      if (call.signal?.aborted === true) throw aborted();
      return await Promise.race([this.#exchange(call, cut.signal), stopped]);
    } catch (error) {
      cut.abort();
      throw error instanceof TraceTallyError ? error : networkError(error);
    } finally {
      timer.cancel();
      call.signal?.removeEventListener('abort', onAbort);
    }
  }

  async #exchange<T>(call: Call<T>, signal: AbortSignal): Promise<T> {
    const { fetch, baseUrl, apiKey, maxReplyBytes } = this.#settings;
    if (apiKey === null) throw noApiKey('This call needs an API key.');
    const response = await fetch(`${baseUrl}${call.path}`, {
      method: call.method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        accept: 'application/json',
        ...(call.body !== undefined && { 'content-type': 'application/json' }),
        ...(call.body?.packed === true && { 'content-encoding': 'gzip' }),
        ...(call.idempotencyKey !== undefined && { 'idempotency-key': call.idempotencyKey }),
      },
      body: call.body?.bytes ?? null,
      // A redirected POST would arrive as a GET, and its reply would look like a success.
      redirect: 'manual',
      signal,
    });
    const { status } = response;
    if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
      throw redirected(response);
    }
    if (response.ok) {
      const bytesMax =
        call.body === undefined ? maxReplyBytes : call.body.plainBytes + replyBytesMax;
      const reply = parseReply(status, await readReply(response, bytesMax, signal), bytesMax);
      if (!call.isReply(reply)) throw badReply(status);
      return reply;
    }
    // If an error reply is too large to read, only its status is used.
    const text = (await readReply(response, replyBytesMax, signal)) ?? '';
    const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'), Date.now());
    const requestId = response.headers.get('x-request-id');
    throw errorOfReply(status, text, requestId, retryAfterMs);
  }
}

/** The second argument of JSON.stringify. */
export type Replacer = (this: unknown, key: string, value: unknown) => unknown;

/** The JSON of an object as bytes, or a TraceTallyError that says why there is none. */
export function serialise(value: unknown, replacer?: Replacer): Bytes {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(value, replacer) as string | undefined;
  } catch (error) {
    cause = error;
  }
  if (text?.startsWith('{') !== true) {
    const why = cause instanceof Error ? ` (${cause.name} while its fields were read)` : '';
    throw new TraceTallyError({
      code: 'not_serialisable',
      detail: `A trace must be an object that can be converted to JSON${why}.`,
      cause,
    });
  }
  return encoder.encode(text);
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without TLS. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function parseReply(status: number, text: string | null, bytesMax: number): unknown {
  if (text === null) throw replyTooLarge(status, bytesMax);
  try {
    return JSON.parse(text);
  } catch {
    throw badReply(status);
  }
}

function replyTooLarge(status: number, bytesMax: number): TraceTallyError {
  return new TraceTallyError({
    status,
    code: 'reply_too_large',
    detail: `The reply is larger than ${bytesMax} bytes and was not read to its end.`,
  });
}

function badReply(status: number): TraceTallyError {
  return new TraceTallyError({
    status,
    code: 'bad_reply',
    detail:
      'The reply did not come from TraceTally. Check that "baseUrl" is the address of a TraceTally server.',
  });
}

function noReply(timeoutMs: number): TraceTallyError {
  return new TraceTallyError({
    code: 'no_reply',
    detail: `The server did not send a complete reply within ${timeoutMs} ms.`,
  });
}

function aborted(): TraceTallyError {
  return new TraceTallyError({ code: 'aborted', detail: 'The request was aborted.' });
}

function redirected(response: Response): TraceTallyError {
  const target = response.headers.get('location');
  return new TraceTallyError({
    status: response.status,
    code: 'redirected',
    detail: `The server redirects requests${target === null ? '' : ` to ${target}`}. Set "baseUrl" to the final address.`,
  });
}

function networkError(error: unknown): TraceTallyError {
  // The error of fetch says only "fetch failed"; its cause has the reason.
  const { cause } = (error ?? {}) as { cause?: unknown };
  const reason = cause instanceof Error ? cause : error;
  const why = textOf(reason, 'code') ?? textOf(reason, 'message') ?? 'unknown reason';
  return new TraceTallyError({
    code: 'network_error',
    detail: `The server could not be reached, or the connection was lost (${why}).`,
    cause: error,
  });
}

function textOf(value: unknown, field: 'code' | 'message'): string | undefined {
  const text = ((value ?? {}) as Partial<Record<typeof field, unknown>>)[field];
  return typeof text === 'string' && text !== '' ? text : undefined;
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(aborted());
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort);
  });
}
