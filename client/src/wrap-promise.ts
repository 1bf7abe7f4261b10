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
 * What the SDKs return: a promise that sends its request at once, and reads the answer only when somebody asks. Every way to ask for
 * it but `asResponse` goes through `parse`.
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

/** Records the call when the result is known. The caller gets the SDK's own promise back, and reading stays as lazy as it was. */
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
    // An answer that we cannot read is still an answer.
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

/** What the caller has asked of the promise so far. */
interface Asks {
  any: boolean;
  parsed: boolean;
  /** The response, by `asResponse`. */
  raw: boolean;
  /** The response on behalf of a helper of the SDK, which reads its body. */
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
    // The first to listen is the first to be told: a stream is observed before the caller holds it.
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
 * The answer is here and nobody has asked to have it parsed: a call that nobody waits for, or one whose raw response the caller reads.
 * A copy of a short answer is read beside it. A stream is left alone: to read it would keep the provider at work for nobody.
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
 * The SDK's promise goes unhandled where nobody asks for it; ours is handled, since we listen. So that the failure is not hushed up,
 * it is raised again, a turn later: by then everybody had the time to ask.
 */
function raiseUnlessAsked(error: unknown, asks: Asks): void {
  setTimeout(() => {
    if (!asks.any) void Promise.reject(error);
  }, 0);
}
