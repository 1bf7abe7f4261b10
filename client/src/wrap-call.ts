import type { TraceInput } from './api-types.ts';
import { errorType } from './error-type.ts';
import type { Labels, Recorder } from './recorder.ts';
import type { Usage } from './usage.ts';
import { cleanCount, cleanName, cleanParts, cleanUsd, errorText } from './wrap-text.ts';

/** What is known about a call when it starts. The input is converted to text then, because callers may change their lists later. */
export interface Asked {
  model: unknown;
  input: string | undefined;
  labels: Labels;
  /** The provider if no label names one. */
  provider: string | undefined;
}

/** What the provider returned, as far as it is known. */
export interface Answer {
  /** Replaces the requested model. */
  model?: unknown;
  /** The exact model that answered, such as `gpt-4o-2024-08-06` for `gpt-4o`; the server prices it. */
  responseModel?: unknown;
  output?: string | undefined;
  usage?: Usage | undefined;
  cost_usd?: number | undefined;
  /** Set if the provider reports a failure although the request succeeded. */
  error?: unknown;
}

/** A call in progress. The first call of `end` or `fail` records it; neither throws. */
export interface Call {
  /** The first part of a streamed answer has arrived. Only the first call counts. */
  outputBegan(): void;
  end(answer: Answer): void;
  fail(error: unknown, answer?: Answer): void;
}

/** When a call happened, as far as it is known. */
interface Timing {
  startedAt: string | undefined;
  latencyMs: number;
  /** Undefined if the answer was not streamed. */
  firstOutputMs: number | undefined;
}

export function beginCall(recorder: Recorder, asked: Asked): Call {
  const startMs = performance.now();
  const startedAt = timeNow();
  let firstOutputMs: number | undefined;
  let isRecorded = false;

  function settle(answer: Answer): void {
    if (isRecorded) return;
    isRecorded = true;
    const latencyMs = performance.now() - startMs;
    guard(recorder, () => {
      recorder.enqueue(traceOf(asked, answer, { startedAt, latencyMs, firstOutputMs }));
    });
  }

  return {
    outputBegan: () => {
      firstOutputMs ??= performance.now() - startMs;
    },
    end: settle,
    fail: (error, answer = {}) => settle({ ...answer, error: error ?? 'unknown error' }),
  };
}

/** Undefined if the clock was never set: the server rejects times before 2000, and the trace would be lost. */
function timeNow(): string | undefined {
  const now = new Date();
  return now.getTime() < Date.UTC(2000) ? undefined : now.toISOString();
}

function traceOf(asked: Asked, answer: Answer, timing: Timing): TraceInput {
  const { usage, error } = answer;
  const { feature, user, session, run, provider } = asked.labels;
  const isError = error !== undefined && error !== null;
  // The requested name comes first, so that successes and failures of one model are counted under one name.
  const models = [answer.model, asked.model, answer.responseModel].map(cleanName);
  const model = models.find((name) => name !== undefined) ?? 'unknown';
  const responseModel = cleanName(answer.responseModel);
  const promptTokens = cleanCount(usage?.input_tokens);
  const completionTokens = cleanCount(usage?.output_tokens);
  return withoutGaps({
    model,
    input: asked.input,
    output: answer.output,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    latency_ms: Math.round(timing.latencyMs),
    cost_usd: cleanUsd(answer.cost_usd),
    status: isError ? 'error' : 'success',
    error_message: isError ? errorText(error) : undefined,
    feature_name: cleanName(feature),
    user_identifier: cleanName(user),
    response_model: responseModel === model ? undefined : responseModel,
    started_at: timing.startedAt,
    provider: cleanName(provider ?? asked.provider),
    session_id: cleanName(session),
    run_id: cleanName(run),
    ...cleanParts(promptTokens, {
      cache_read_tokens: usage?.cache_read_tokens,
      cache_write_tokens: usage?.cache_write_tokens,
    }),
    ...cleanParts(completionTokens, { reasoning_tokens: usage?.reasoning_tokens }),
    ttft_ms: timing.firstOutputMs === undefined ? undefined : Math.round(timing.firstOutputMs),
    error_type: isError ? errorType(error) : undefined,
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
