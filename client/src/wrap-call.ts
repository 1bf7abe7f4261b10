import type { TraceInput } from './api-types.ts';
import { priced } from './price.ts';
import type { Seller, Usage } from './price.ts';
import type { Labels, Recorder } from './recorder.ts';
import { cleanCount, cleanName, cleanUsd, errorText } from './wrap-text.ts';

/** What is known about a call when it starts. The input is converted to text then, because callers may change their lists later. */
export interface Asked {
  model: unknown;
  input: string | undefined;
  labels: Labels;
  seller: Seller;
}

/** What the provider returned, as far as it is known. */
export interface Answer {
  /** Replaces the requested model. */
  model?: unknown;
  /** The exact model that answered, such as `gpt-4o-2024-08-06` for `gpt-4o`; used for the price. */
  responseModel?: unknown;
  output?: string | undefined;
  usage?: Usage | undefined;
  cost_usd?: number | undefined;
  /** Set if the provider reports a failure although the request succeeded. */
  error?: unknown;
}

/** A call in progress. The first call of `end` or `fail` records it; neither throws. */
export interface Call {
  end(answer: Answer): void;
  fail(error: unknown, answer?: Answer): void;
}

export function beginCall(recorder: Recorder, asked: Asked): Call {
  const startMs = performance.now();
  let isRecorded = false;

  function settle(answer: Answer): void {
    if (isRecorded) return;
    isRecorded = true;
    const latencyMs = performance.now() - startMs;
    guard(recorder, () => {
      const trace = traceOf(asked, answer, latencyMs);
      priced(recorder, trace, answer.usage, asked.seller, cleanName(answer.responseModel));
    });
  }

  return {
    end: settle,
    fail: (error, answer = {}) => settle({ ...answer, error: error ?? 'unknown error' }),
  };
}

function traceOf(asked: Asked, answer: Answer, latencyMs: number): TraceInput {
  const { usage, error } = answer;
  const { feature, user } = asked.labels;
  const isError = error !== undefined && error !== null;
  // The requested name comes first, so that successes and failures of one model are counted under one name.
  const models = [answer.model, asked.model, answer.responseModel].map(cleanName);
  return withoutGaps({
    model: models.find((model) => model !== undefined) ?? 'unknown',
    input: asked.input,
    output: answer.output,
    prompt_tokens: cleanCount(usage?.input_tokens),
    completion_tokens: cleanCount(usage?.output_tokens),
    latency_ms: Math.round(latencyMs),
    cost_usd: cleanUsd(answer.cost_usd),
    status: isError ? 'error' : 'success',
    error_message: isError ? errorText(error) : undefined,
    feature_name: cleanName(feature),
    user_identifier: cleanName(user),
  });
}

function withoutGaps(trace: TraceInput): TraceInput {
  const fields: Record<string, unknown> = trace as unknown as Record<string, unknown>;
  for (const name of Object.keys(fields)) if (fields[name] === undefined) delete fields[name];
  return trace;
}

/** Recording must never break the recorded call: a problem is reported, and the call continues. */
export function guard<T>(recorder: Recorder, run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    recorder.report(error);
    return undefined;
  }
}
