import { parseRetryAfter, whileWaitedFor, withRetries } from './backoff.ts';
import { errorOfReply, TraceTallyError } from './errors.ts';
import { readReply } from './reply-body.ts';
import type { Settings } from './settings.ts';

export type Bytes = Uint8Array<ArrayBuffer>;

/** A body that is ready to be sent any number of times. */
export interface Body {
  bytes: Bytes;
  packed: boolean;
  /** Before it was packed. */
  plainBytes: number;
}

export interface Call<T> {
  method: 'GET' | 'POST';
  /** Below the base URL, with its query. */
  path: string;
  body?: Body;
  idempotencyKey?: string;
  signal?: AbortSignal | undefined;
  /** Whether it is a reply to this call; any other is an error with the code `bad_reply`. */
  isReply(reply: unknown): reply is T;
}

/** Below this a packed body saves nothing: it fits into one packet as it is. */
const packBytesMin = 1024;
/** Of an error, and of what the server adds to a write: ids and times of 1,000 traces, or why each of them was rejected. */
const replyBytesMax = 4 * 1024 * 1024;
const encoder = new TextEncoder();

/** Requests to one server with one key. Every failure is a TraceTallyError. */
export class Transport {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Packs once for all tries. */
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
      // Packing only saves bytes on the way; no trace may be lost for want of it.
      return plain;
    }
  }

  /** Tries a few times, for a caller who waits. */
  async call<T>(call: Call<T>): Promise<T> {
    return withRetries(
      () => this.try(call),
      whileWaitedFor(this.#settings),
      (ms) => pause(ms, call.signal),
    );
  }

  /** One request, and the JSON of its reply. */
  async try<T>(call: Call<T>): Promise<T> {
    const { requestTimeoutMs } = this.#settings;
    const cut = new AbortController();
    let stop: (error: TraceTallyError) => void = () => {};
    // The race ends the wait even where a fetch of the caller's own does not listen to the signal.
    const stopped = new Promise<never>((_resolve, reject) => (stop = reject));
    const timer = setTimeout(() => stop(noReply(requestTimeoutMs)), requestTimeoutMs);
    const onAbort = (): void => stop(aborted());
    call.signal?.addEventListener('abort', onAbort);
    try {
      if (call.signal?.aborted === true) throw aborted();
      return await Promise.race([this.#exchange(call, cut.signal), stopped]);
    } catch (error) {
      cut.abort();
      throw error instanceof TraceTallyError ? error : networkError(error);
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', onAbort);
    }
  }

  async #exchange<T>(call: Call<T>, signal: AbortSignal): Promise<T> {
    const { fetch, baseUrl, apiKey, maxReplyBytes } = this.#settings;
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
      // A redirected POST would arrive as a GET, and its reply look like a success.
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
    // An error that is too long to be read is known by its status.
    const text = (await readReply(response, replyBytesMax, signal)) ?? '';
    const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'), Date.now());
    const requestId = response.headers.get('x-request-id');
    throw errorOfReply(status, text, requestId, retryAfterMs);
  }
}

/** The text of a value as bytes, or a TraceTallyError that says why there is none. */
export function serialise(value: unknown): Bytes {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(value) as string | undefined;
  } catch (error) {
    cause = error;
  }
  if (text?.startsWith('{') !== true) {
    const why = cause instanceof Error ? `: ${cause.name} while reading its fields` : '';
    throw new TraceTallyError({
      code: 'not_serialisable',
      detail: `A trace must be an object that JSON can hold${why}.`,
      cause,
    });
  }
  return encoder.encode(text);
}

/** Random enough that no two requests ever share one; also where `crypto.randomUUID` is missing, as on pages without TLS. */
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
    detail: `The reply is longer than ${bytesMax} bytes and was not read to its end.`,
  });
}

function badReply(status: number): TraceTallyError {
  return new TraceTallyError({
    status,
    code: 'bad_reply',
    detail: 'The reply is not one of TraceTally; is something else at this address?',
  });
}

function noReply(timeoutMs: number): TraceTallyError {
  return new TraceTallyError({
    code: 'no_reply',
    detail: `No whole reply came within ${timeoutMs} ms.`,
  });
}

function aborted(): TraceTallyError {
  return new TraceTallyError({ code: 'aborted', detail: 'The request was called off.' });
}

function redirected(response: Response): TraceTallyError {
  const target = response.headers.get('location');
  return new TraceTallyError({
    status: response.status,
    code: 'redirected',
    detail: `The server sends requests on${target === null ? '' : ` to ${target}`}; set "baseUrl" to where they end up.`,
  });
}

function networkError(error: unknown): TraceTallyError {
  // What fetch throws says only "fetch failed"; the reason stands in its cause.
  const { cause } = (error ?? {}) as { cause?: unknown };
  const reason = cause instanceof Error ? cause : error;
  const told = textOf(reason, 'code') ?? textOf(reason, 'message') ?? 'no reason given';
  return new TraceTallyError({
    code: 'network_error',
    detail: `The server could not be reached, or the connection broke (${told}).`,
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
