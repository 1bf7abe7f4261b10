import { ContentCollector, generatedAnswer } from './provider-vercel-ai.ts';
import type { Labels, Recorder } from './recorder.ts';
import { beginCall, guard } from './wrap-call.ts';
import type { Call } from './wrap-call.ts';
import { watchedSource } from './wrap-readable.ts';
import { collect, recordWhenForgotten } from './wrap-stream.ts';
import { asTextWithoutBytes } from './wrap-text.ts';

/** The part of what the AI SDK passes to a middleware that is used. */
export interface MiddlewareOptions {
  params: { prompt?: unknown; abortSignal?: AbortSignal | undefined };
  model: { modelId?: string; provider?: string };
}

/**
 * A middleware for `wrapLanguageModel` of the AI SDK (the package `ai`, versions 4 to 7). Declared by its shape, so that this package
 * does not depend on `ai`.
 */
export interface VercelMiddleware {
  /** Newer interface versions accept it as well; AI SDK 4 and 5 ignore it. */
  readonly specificationVersion: 'v3';
  wrapGenerate<R>(options: MiddlewareOptions & { doGenerate: () => PromiseLike<R> }): Promise<R>;
  wrapStream<R extends { stream: ReadableStream<unknown> }>(
    options: MiddlewareOptions & { doStream: () => PromiseLike<R> },
  ): Promise<R>;
}

/** For a client that records nothing. */
export const passThroughMiddleware: VercelMiddleware = {
  specificationVersion: 'v3',
  async wrapGenerate({ doGenerate }) {
    return doGenerate();
  },
  async wrapStream({ doStream }) {
    return doStream();
  },
};

/** Records each call that the AI SDK makes to a model: one per step of `generateText` or `streamText`. */
export function vercelMiddleware(recorder: Recorder, labels: Labels = {}): VercelMiddleware {
  function begin({ params, model }: MiddlewareOptions): Call {
    const input = guard(recorder, () => asTextWithoutBytes(params?.prompt));
    // Of the form `openai.chat`.
    const provider = model?.provider?.split('.')[0];
    return beginCall(recorder, { model: model?.modelId, input, labels, provider });
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
    collect(call, collector, part);
    return !isStart(part);
  };
  const source = watchedSource(stream, { recorder, call, collector, signal, see });
  // Nothing is read ahead.
  const observing = new ReadableStream(source, { highWaterMark: 0 });
  recordWhenForgotten(observing, { call, collector });
  return observing;
}

/** Comes before the provider's first output. */
function isStart(part: unknown): boolean {
  return (part as { type?: unknown } | undefined)?.type === 'stream-start';
}
