export type TraceStatus = 'success' | 'error';

/** The body of `POST /traces` once the schema has accepted it: types and ranges hold. */
export interface TraceInput {
  model: string;
  input?: string | null;
  output?: string | null;
  prompt_tokens?: number | null;
  completion_tokens?: number | null;
  latency_ms?: number | null;
  cost_usd?: number | null;
  status?: TraceStatus | null;
  error_message?: string | null;
  feature_name?: string | null;
  user_identifier?: string | null;
}

/** A trace that is ready to be stored: clean text, defaults filled in, nothing left to check. */
export interface TraceDraft {
  model: string;
  input: string | null;
  output: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  latencyMs: number | null;
  costUsd: number | null;
  status: TraceStatus;
  errorMessage: string | null;
  featureName: string | null;
  userIdentifier: string | null;
}

/** A trace as the store holds it. */
export interface Trace extends TraceDraft {
  id: string;
  teamId: string;
  createdAtUs: number;
  /** Payloads whose stored bytes cannot be read any more; they are null here. Absent if there are none. */
  damaged?: readonly PayloadName[];
}

/** The texts of a trace that may be long: names on the wire and of the columns of every store. Lists may leave them out. */
export const payloadNames = ['input', 'output', 'error_message'] as const;
export type PayloadName = (typeof payloadNames)[number];

/** What no route ever sets and only the store knows. */
export interface TraceStamp {
  id: string;
  createdAtUs: number;
}

export function draftTrace(body: TraceInput): TraceDraft {
  const errorMessage = cleanText(body.error_message);
  return {
    model: body.model.toWellFormed(),
    input: cleanText(body.input),
    output: cleanText(body.output),
    promptTokens: cleanNumber(body.prompt_tokens),
    completionTokens: cleanNumber(body.completion_tokens),
    latencyMs: cleanNumber(body.latency_ms),
    costUsd: cleanNumber(body.cost_usd),
    status: body.status ?? (errorMessage ? 'error' : 'success'),
    errorMessage,
    featureName: cleanText(body.feature_name),
    userIdentifier: cleanText(body.user_identifier),
  };
}

/** Lone surrogates cannot be written as UTF-8. They become U+FFFD here, so that the reply says what is stored. */
function cleanText(text: string | null | undefined): string | null {
  return text?.toWellFormed() ?? null;
}

/** Adding zero turns -0 into 0, which is how every store and JSON would return it. */
function cleanNumber(value: number | null | undefined): number | null {
  return value === null || value === undefined ? null : value + 0;
}

/** About how much memory a draft holds while it waits. */
export function draftBytes(draft: TraceDraft): number {
  return (
    fixedDraftBytes +
    (draft.input?.length ?? 0) +
    (draft.output?.length ?? 0) +
    (draft.errorMessage?.length ?? 0)
  );
}
const fixedDraftBytes = 512;
