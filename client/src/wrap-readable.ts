import type { Recorder } from './recorder.ts';
import { guard } from './wrap-call.ts';
import type { Call } from './wrap-call.ts';
import { failureOfAbort } from './wrap-stream.ts';
import type { Collector } from './wrap-stream.ts';

/** How a readable stream is observed for a call. */
export interface Watch<T> {
  recorder: Recorder;
  call: Call;
  collector: Collector;
  /** Ends the call if the caller aborts it. */
  signal: AbortSignal | undefined;
  /** Observes a chunk; true if it is part of the answer. */
  see(chunk: T): boolean;
}

interface WatchedSource<T> {
  pull(controller: { enqueue(chunk: T): void; close(): void }): Promise<void>;
  cancel(reason: unknown): Promise<void>;
}

/** Source of a stream that yields the same chunks and reads only on demand. */
export function watchedSource<T>(source: ReadableStream<T>, watch: Watch<T>): WatchedSource<T> {
  const { recorder, call, collector, signal } = watch;
  let reader: ReadableStreamDefaultReader<T> | undefined;
  let sawSome = false;

  function settle(error?: unknown): void {
    const answer = guard(recorder, () => collector.answer()) ?? {};
    const failure = signal?.aborted === true ? failureOfAbort([signal], sawSome) : error;
    if (failure === undefined) call.end(answer);
    else call.fail(failure, answer);
  }

  return {
    async pull(controller) {
      try {
        reader ??= source.getReader();
        const { done, value } = await reader.read();
        if (done) {
          settle();
          controller.close();
          return;
        }
        const isAnswer = guard(recorder, () => watch.see(value)) ?? true;
        sawSome ||= isAnswer;
        controller.enqueue(value);
      } catch (error) {
        settle(error ?? 'unknown error');
        throw error;
      }
    },
    async cancel(reason) {
      settle();
      await (reader ?? source).cancel(reason);
    },
  };
}
