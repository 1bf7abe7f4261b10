import type { Recorder } from './recorder.ts';
import { guard } from './wrap-call.ts';
import type { Answer, Call } from './wrap-call.ts';

/** Assembles the answer from the items of a stream. */
export interface Collector {
  /** False for items that the caller must not receive, because only the wrapper requested them. */
  see(item: unknown): boolean;
  /** Whether a part of the answer has arrived: text, a tool call or reasoning. */
  hasOutput(): boolean;
  answer(): Answer;
}

/** Adds an item to the answer, and notes when the answer begins. Returns whether the caller may receive the item. */
export function collect(call: Call, collector: Collector, item: unknown): boolean {
  const isForCaller = collector.see(item);
  if (collector.hasOutput()) call.outputBegan();
  return isForCaller;
}

/** What the SDKs' streams have in common: every reader obtains its iterator from this function. */
export interface SdkStream {
  iterator: () => AsyncIterator<unknown>;
  controller?: AbortController;
}

export function isSdkStream(data: unknown): data is SdkStream {
  const { iterator } = (data ?? {}) as { iterator?: unknown };
  return typeof iterator === 'function';
}

/**
 * Observes what is read from the stream, by changing the stream object, which belongs to this one call. Its methods, such as `tee()`
 * and `toReadableStream()`, stay the SDK's own.
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
    return guard(recorder, () => collect(call, collector, item)) ?? true;
  }

  function settle(): void {
    const failure = failureOfAbort([callerSignal, stream.controller?.signal], sawSome);
    if (failure === undefined) call.end(answer());
    else call.fail(failure, answer());
  }

  stream.iterator = async function* observed() {
    const source = open();
    if (isStarted) {
      // The SDK's own error says that a stream cannot be read twice.
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
      // Settled first, because closing the source aborts the request and may take a while.
      settle();
      if (!isOver) await source.return?.();
    }
  };
}

/**
 * A caller that stops reading, with `break` or an abort, has what it needs: that is not a failure. It is a failure if no output had
 * arrived or a timeout ended the stream.
 */
export function failureOfAbort(
  signals: readonly (AbortSignal | undefined)[],
  sawSome: boolean,
): unknown {
  const aborted = signals.filter((signal) => signal?.aborted === true);
  const reasons = aborted.map((signal) => signal?.reason as unknown);
  const timeout = reasons.find((reason) => (reason as Error | undefined)?.name === 'TimeoutError');
  if (timeout !== undefined) return timeout;
  if (aborted.length === 0 || sawSome) return undefined;
  return Object.assign(new Error('Request was aborted.'), { name: 'AbortError' });
}

/** Must not refer to the stream, or the stream would never be garbage collected. */
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

/** Records a call whose stream is never read to its end when the stream is garbage collected. */
export function recordWhenForgotten(holder: object, unfinished: Unfinished): void {
  forgotten?.register(holder, unfinished);
}
