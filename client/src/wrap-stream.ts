import type { Recorder } from './recorder.ts';
import { guard } from './wrap-call.ts';
import type { Answer, Call } from './wrap-call.ts';

/** Puts the answer together from what streams by. */
export interface Collector {
  /** False for what the caller must not see, since only our own question brought it. */
  see(item: unknown): boolean;
  answer(): Answer;
}

/** What the SDKs' streams have in common: everything that reads one asks this function for its iterator. */
export interface SdkStream {
  iterator: () => AsyncIterator<unknown>;
  controller?: AbortController;
}

export function isSdkStream(data: unknown): data is SdkStream {
  const { iterator } = (data ?? {}) as { iterator?: unknown };
  return typeof iterator === 'function';
}

/**
 * Looks at what is read from the stream, in the stream object itself: it was made for this one call. Its methods, `tee()` and
 * `toReadableStream()` among them, stay the SDK's own.
 */
export function observeStream(
  recorder: Recorder,
  stream: SdkStream,
  call: Call,
  collector: Collector,
  callerSignal: AbortSignal | undefined,
): void {
  const open = stream.iterator.bind(stream);
  let isStarted = false;
  let sawSome = false;
  recordWhenForgotten(stream, { call, collector });

  const answer = (): Answer => guard(recorder, () => collector.answer()) ?? {};

  function see(item: unknown): boolean {
    sawSome = true;
    return guard(recorder, () => collector.see(item)) ?? true;
  }

  function settle(): void {
    const failure = failureOfAbort([callerSignal, stream.controller?.signal], sawSome);
    if (failure === undefined) call.end(answer());
    else call.fail(failure, answer());
  }

  stream.iterator = async function* observed() {
    const source = open();
    if (isStarted) {
      // The SDK's own stream says why it cannot be read twice.
      yield* { [Symbol.asyncIterator]: () => source };
      return;
    }
    isStarted = true;
    let isOver = false;

    async function read(): Promise<IteratorResult<unknown>> {
      try {
        const step = await source.next();
        isOver = step.done === true;
        return step;
      } catch (error) {
        isOver = true;
        call.fail(error, answer());
        throw error;
      }
    }

    try {
      for (let step = await read(); step.done !== true; step = await read()) {
        if (see(step.value)) yield step.value;
      }
    } finally {
      // Settled first: to close the source may take a while, and aborts the request.
      settle();
      if (!isOver) await source.return?.();
    }
  };
}

/**
 * Whoever stops reading has what it wanted: that is no failure, whether it was a `break` or an abort. It is one where no answer had
 * begun, and where the time ran out.
 */
export function failureOfAbort(
  signals: readonly (AbortSignal | undefined)[],
  sawSome: boolean,
): unknown {
  const aborted = signals.filter((signal) => signal?.aborted === true);
  const reasons = aborted.map((signal) => signal?.reason as unknown);
  const timeout = reasons.find((reason) => (reason as Error | undefined)?.name === 'TimeoutError');
  if (timeout !== undefined) return timeout;
  return aborted.length > 0 && !sawSome ? new Error('Request was aborted.') : undefined;
}

/** Must not refer to what it waits for, or that would never be thrown away. */
interface Unfinished {
  call: Call;
  collector?: Collector;
}

const forgotten =
  typeof FinalizationRegistry === 'function'
    ? new FinalizationRegistry<Unfinished>(({ call, collector }) => {
        try {
          call.end(collector?.answer() ?? {});
        } catch {
          call.end({});
        }
      })
    : undefined;

/** A call whose stream nobody reads to its end is recorded when the stream is thrown away: nothing else tells that it is over. */
export function recordWhenForgotten(holder: object, unfinished: Unfinished): void {
  forgotten?.register(holder, unfinished);
}
