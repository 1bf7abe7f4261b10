import type { Labels, Recorder } from './recorder.ts';
import type { Usage } from './usage.ts';
import { beginCall, guard } from './wrap-call.ts';
import type { Answer, Call } from './wrap-call.ts';
import { isPromiseLike } from './wrap-promise.ts';
import { asTextWithoutBytes } from './wrap-text.ts';

/** A call of any kind, described by the caller. */
export interface MeasuredCall extends Labels {
  model: string;
  /** Text, or anything that can be converted to JSON. */
  input?: unknown;
}

/** What becomes known about the call while it runs. */
export interface MeasuredAnswer {
  /** Replaces the model of the call, for example if a router chose it. */
  model?: string | undefined;
  /** The exact model that answered, if it differs; the server prices it. */
  response_model?: string | undefined;
  /** Text, or anything that can be converted to JSON. */
  output?: unknown;
  /** All tokens that were sent, including cached ones. */
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  /** How many of the prompt tokens came from the provider's cache: `cache_read_tokens` of the trace. */
  cached_tokens?: number | undefined;
  /** How many of the prompt tokens were written to the provider's cache. */
  cache_write_tokens?: number | undefined;
  /** How many of the completion tokens were spent on reasoning. */
  reasoning_tokens?: number | undefined;
  cost_usd?: number | undefined;
  /** Marks the call as failed although it did not throw. */
  error_message?: string | undefined;
}

/** May be called several times; later values replace earlier ones. Never throws. */
export type SetAnswer = (answer: MeasuredAnswer) => void;

/** The result of the function, or a promise of it. */
export type Measured<T> = T extends PromiseLike<infer R> ? Promise<R> : T;

/**
 * Runs the function and records it as one call: its duration, whether it threw, and what it passed to `set`. Its result and its errors
 * reach the caller unchanged.
 */
export function measure<T>(
  recorder: Recorder,
  { model, input, ...labels }: MeasuredCall,
  run: (set: SetAnswer) => T,
): Measured<T> {
  const known: MeasuredAnswer = {};
  const text = guard(recorder, () => asTextWithoutBytes(input));
  const call = beginCall(recorder, { model, input: text, labels, provider: undefined });
  const answer = (): Answer => ({
    model: known.model,
    responseModel: known.response_model,
    output: guard(recorder, () => asTextWithoutBytes(known.output)),
    usage: usageOf(known),
    cost_usd: known.cost_usd,
    error: known.error_message,
  });
  const set: SetAnswer = (more) => void Object.assign(known, more);

  const result = runOrFail(call, answer, () => run(set));
  if (!isPromiseLike(result)) {
    call.end(answer());
    return result as Measured<T>;
  }
  const measured = Promise.resolve(result).then(
    (value) => {
      call.end(answer());
      return value;
    },
    (error: unknown) => {
      call.fail(error, answer());
      throw error;
    },
  );
  return measured as Measured<T>;
}

/** Runs the function without recording anything, with the same kind of result as `measure`. */
export function runUnmeasured<T>(run: (set: SetAnswer) => T): Measured<T> {
  const result = run(() => {});
  return (isPromiseLike(result) ? Promise.resolve(result) : result) as Measured<T>;
}

function runOrFail<T>(call: Call, answer: () => Answer, run: () => T): T {
  try {
    return run();
  } catch (error) {
    call.fail(error, answer());
    throw error;
  }
}

function usageOf(known: MeasuredAnswer): Usage {
  return {
    input_tokens: known.prompt_tokens,
    output_tokens: known.completion_tokens,
    cache_read_tokens: known.cached_tokens,
    cache_write_tokens: known.cache_write_tokens,
    reasoning_tokens: known.reasoning_tokens,
  };
}
