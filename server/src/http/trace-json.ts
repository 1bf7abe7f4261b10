import { formatTimestamp } from '../core/clock.ts';
import type { Trace } from '../core/trace.ts';
import type { PayloadName } from '../core/trace.ts';

/** A stored trace as it goes onto the wire. */
export function traceJson(trace: Trace) {
  return {
    id: trace.id,
    team_id: trace.teamId,
    model: trace.model,
    input: trace.input,
    output: trace.output,
    prompt_tokens: trace.promptTokens,
    completion_tokens: trace.completionTokens,
    latency_ms: trace.latencyMs,
    cost_usd: trace.costUsd,
    status: trace.status,
    error_message: trace.errorMessage,
    feature_name: trace.featureName,
    user_identifier: trace.userIdentifier,
    created_at: formatTimestamp(trace.createdAtUs),
    ...(trace.damaged && { damaged: trace.damaged }),
  };
}

/** The same for a list that leaves payloads out: their fields are absent, not null. */
export function listedTraceJson(trace: Trace, omit: ReadonlySet<PayloadName>) {
  const json: Partial<ReturnType<typeof traceJson>> = traceJson(trace);
  for (const name of omit) delete json[name];
  return json;
}
