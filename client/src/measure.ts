import type { Usage } from './price.ts';
import type { Labels, Recorder } from './recorder.ts';
import { beginCall, guard } from './wrap-call.ts';
import type { Answer, Call } from './wrap-call.ts';
import { isPromiseLike } from './wrap-promise.ts';
import { asTextWithoutBytes } from './wrap-text.ts';

/** A call that is measured by hand. */
export interface MeasuredCall extends Labels {
  model: string;
  /** Text, or anything that JSON can hold. */
  input?: unknown;
  /** Whose prices count where `cost_usd` is not set, such as `openai` or `groq`; left out, the model's name decides. */
  provider?: string | undefined;
}

/** What becomes known of the call while it runs. */
export interface MeasuredAnswer {
  /** Where another model answered than was asked for. */
  model?: string | undefined;
  /** Text, or anything that JSON can hold. */
  output?: unknown;
  /** All tokens that were sent, those from a cache included. */
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  /** How many of the prompt's tokens came from the provider's cache, for the price. */
  cached_tokens?: number | undefined;
  cost_usd?: number | undefined;
  /** Says that the call failed, though nothing was thrown. */
  error_message?: string | undefined;
}

/** May be called as often as there is something to tell; what is told later counts. Never throws. */
export type SetAnswer = (answer: MeasuredAnswer) => void;

/** What comes back of a function: its result, or a promise of it. */
export type Measured<T> = T extends PromiseLike<infer R> ? Promise<R> : T;

/**
 * Runs the function and records it as one call: how long it took, whether it threw, and what it told `set`. Its result comes back, and
 * its error is thrown on, unchanged.
 */
export function measure<T>(
  recorder: Recorder,
  { model, input, provider, feature, user }: MeasuredCall,
  run: (set: SetAnswer) => T,
): Measured<T> {
  const told: MeasuredAnswer = {};
  const text = guard(recorder, () => asTextWithoutBytes(input));
  const labels = { feature, user };
  const call = beginCall(recorder, { model, input: text, labels, seller: { name: provider } });
  const answer = (): Answer => ({
    model: told.model,
    output: guard(recorder, () => asTextWithoutBytes(told.output)),
    usage: usageOf(told),
    cost_usd: told.cost_usd,
    error: told.error_message,
  });
  const set: SetAnswer = (more) => void Object.assign(told, more);

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

function runOrFail<T>(call: Call, answer: () => Answer, run: () => T): T {
  try {
    return run();
  } catch (error) {
    call.fail(error, answer());
    throw error;
  }
}

function usageOf({ prompt_tokens, completion_tokens, cached_tokens }: MeasuredAnswer): Usage {
  return {
    input_tokens: prompt_tokens,
    output_tokens: completion_tokens,
    cache_read_tokens: cached_tokens,
  };
}
