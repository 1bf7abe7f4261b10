import type { Recorder } from './recorder.ts';
import { observeBody } from './wrap-body.ts';
import { guard } from './wrap-call.ts';
import type { Answer, Call } from './wrap-call.ts';
import { isSdkStream, observeStream, recordWhenForgotten } from './wrap-stream.ts';
import type { Collector } from './wrap-stream.ts';

/** How the answers to one call are read. */
export interface AnswerReader {
  answer(data: unknown): Answer;
  collector(): Collector;
  /** The caller's own signal, which may end the call. */
  signal: AbortSignal | undefined;
}

/**
 * What the SDKs return: a promise that sends its request at once and reads the answer only on demand. Every way to read it except
 * `asResponse` calls `parse`.
 */
interface ApiPromise extends Promise<unknown> {
  responsePromise: Promise<{ response: Response }>;
  parse(): Promise<unknown>;
  asResponse(): Promise<Response>;
  _thenUnwrap(transform: (data: unknown, props: unknown) => unknown): ApiPromise;
  _responseProps?(): Promise<unknown>;
}

function isApiPromise(value: unknown): value is ApiPromise {
  const promise = (value ?? {}) as Partial<Record<keyof ApiPromise, unknown>>;
  return (
    typeof promise.parse === 'function' &&
    typeof promise.asResponse === 'function' &&
    typeof promise._thenUnwrap === 'function' &&
    typeof (promise.responsePromise as Partial<Promise<unknown>> | undefined)?.then === 'function'
  );
}

export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  const { then } = (value ?? {}) as { then?: unknown };
  return typeof then === 'function';
}

/** Records the call when its result is known. The caller receives the SDK's own promise, and reading stays lazy. */
export function observeResult(
  recorder: Recorder,
  result: unknown,
  call: Call,
  reader: AnswerReader,
): unknown {
  const take = (data: unknown): void => {
    const taken = guard(recorder, () => {
      if (isSdkStream(data)) {
        observeStream(recorder, data, call, reader.collector(), reader.signal);
      } else call.end(reader.answer(data));
      return true;
    });
    // A call whose answer cannot be read is recorded without it.
    if (taken === undefined) call.end({});
  };
  if (isApiPromise(result)) {
    observeApiPromise(recorder, result, call, reader, take);
    return result;
  }
  if (!isPromiseLike(result)) {
    take(result);
    return result;
  }
  return Promise.resolve(result).then(
    (data) => {
      take(data);
      return data;
    },
    (error: unknown) => {
      call.fail(error);
      throw error;
    },
  );
}

/** How the caller has used the promise so far. */
interface Asks {
  any: boolean;
  parsed: boolean;
  /** The response, by `asResponse`. */
  raw: boolean;
  /** The response, by a helper of the SDK that reads its body. */
  inner: boolean;
}

function observeApiPromise(
  recorder: Recorder,
  promise: ApiPromise,
  call: Call,
  reader: AnswerReader,
  take: (data: unknown) => void,
): void {
  const asks: Asks = { any: false, parsed: false, raw: false, inner: false };
  hook(promise, call, asks, take);
  promise.responsePromise.then(
    ({ response }) => {
      if (!asks.parsed)
        guard(recorder, () => readBeside(recorder, promise, response, call, reader, asks));
    },
    (error: unknown) => {
      call.fail(error);
      if (!asks.any) raiseUnlessAsked(error, asks);
    },
  );
}

function hook(
  promise: ApiPromise,
  call: Call,
  asks: Asks,
  take: ((data: unknown) => void) | undefined,
): void {
  const parse = promise.parse.bind(promise);
  const unwrap = promise._thenUnwrap.bind(promise);
  const asResponse = promise.asResponse.bind(promise);
  const responseProps = promise._responseProps?.bind(promise);
  let isFirst = true;
  promise.parse = () => {
    asks.any = asks.parsed = true;
    const parsed = parse();
    // The first listener runs first: a stream is observed before the caller receives it.
    if (isFirst) parsed.then(take, (error: unknown) => call.fail(error));
    isFirst = false;
    return parsed;
  };
  promise._thenUnwrap = (transform) => {
    asks.any = true;
    const derived = unwrap((data, props) => {
      take?.(data);
      return transform(data, props);
    });
    hook(derived, call, asks, undefined);
    return derived;
  };
  promise.asResponse = () => {
    asks.any = asks.raw = true;
    return asResponse();
  };
  if (responseProps !== undefined) {
    promise._responseProps = () => {
      asks.any = asks.inner = true;
      return responseProps();
    };
  }
}

/**
 * The reply has arrived and the caller has not parsed it: the call is not awaited, or the caller reads the raw response. A JSON reply
 * is read from a copy. A stream is not read, because that would make the provider generate text that is not used.
 */
function readBeside(
  recorder: Recorder,
  promise: ApiPromise,
  response: Response,
  call: Call,
  reader: AnswerReader,
  asks: Asks,
): void {
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('json')) {
    const end = (data: unknown): void => {
      try {
        call.end(reader.answer(data));
      } catch {
        call.end({});
      }
    };
    response
      .clone()
      .json()
      .then(end, () => call.end({}));
  } else if (asks.raw) call.end({});
  else if (asks.inner) observeBody(recorder, response, call, reader.collector(), reader.signal);
  else recordWhenForgotten(promise, { call });
}

/**
 * If the caller does not handle the SDK's promise, its failure is an unhandled rejection. Listening here handles it, so the failure is
 * raised again in the next turn of the event loop, unless the caller has handled it by then.
 */
function raiseUnlessAsked(error: unknown, asks: Asks): void {
  setTimeout(() => {
    if (!asks.any) void Promise.reject(error);
  }, 0);
}
