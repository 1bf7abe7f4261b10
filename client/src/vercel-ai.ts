import { loadPrices } from './price.ts';
import { ContentCollector, generatedAnswer } from './provider-vercel-ai.ts';
import type { Labels, Recorder } from './recorder.ts';
import { beginCall, guard } from './wrap-call.ts';
import type { Call } from './wrap-call.ts';
import { watchedSource } from './wrap-readable.ts';
import { recordWhenForgotten } from './wrap-stream.ts';
import { asTextWithoutBytes } from './wrap-text.ts';

/** What the AI SDK hands to a middleware, as far as it is looked at. */
export interface MiddlewareOptions {
  params: { prompt?: unknown; abortSignal?: AbortSignal | undefined };
  model: { modelId?: string; provider?: string };
}

/**
 * A middleware for `wrapLanguageModel` of the AI SDK (`ai`). Described by its shape, so that the package is not needed to use this one.
 */
export interface VercelMiddleware {
  /** Both the versions 3 and 4 of the SDK's interface take it. */
  readonly specificationVersion: 'v3';
  wrapGenerate<R>(options: MiddlewareOptions & { doGenerate: () => PromiseLike<R> }): Promise<R>;
  wrapStream<R extends { stream: ReadableStream<unknown> }>(
    options: MiddlewareOptions & { doStream: () => PromiseLike<R> },
  ): Promise<R>;
}

/** Records each call that the AI SDK makes to a model: one for each step of `generateText` or `streamText`. */
export function vercelMiddleware(recorder: Recorder, labels: Labels = {}): VercelMiddleware {
  loadPrices();

  function begin({ params, model }: MiddlewareOptions): Call {
    const input = guard(recorder, () => asTextWithoutBytes(params?.prompt));
    const seller = { name: model?.provider };
    return beginCall(recorder, { model: model?.modelId, input, labels, seller });
  }

  return {
    specificationVersion: 'v3',
    async wrapGenerate({ doGenerate, ...options }) {
      const call = begin(options);
      const result = await orFail(call, doGenerate);
      call.end(guard(recorder, () => generatedAnswer(result)) ?? {});
      return result;
    },
    async wrapStream({ doStream, ...options }) {
      const call = begin(options);
      const result = await orFail(call, doStream);
      const signal = options.params?.abortSignal;
      const stream = guard(recorder, () => observed(recorder, result.stream, call, signal));
      return stream === undefined ? result : { ...result, stream };
    },
  };
}

async function orFail<R>(call: Call, run: () => PromiseLike<R>): Promise<R> {
  try {
    return await run();
  } catch (error) {
    call.fail(error);
    throw error;
  }
}

function observed(
  recorder: Recorder,
  stream: ReadableStream<unknown>,
  call: Call,
  signal: AbortSignal | undefined,
): ReadableStream<unknown> {
  const collector = new ContentCollector();
  const see = (part: unknown): boolean => {
    collector.see(part);
    return !isStart(part);
  };
  const source = watchedSource(stream, { recorder, call, collector, signal, see });
  // Nothing is read ahead.
  const observing = new ReadableStream(source, { highWaterMark: 0 });
  recordWhenForgotten(observing, { call, collector });
  return observing;
}

/** Comes before the provider has said anything. */
function isStart(part: unknown): boolean {
  return (part as { type?: unknown } | undefined)?.type === 'stream-start';
}
