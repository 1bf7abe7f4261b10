// Written by `npm run client-types` from docs/openapi.json; edits are lost.

/** Fields that are not listed here are ignored; null is the same as left out. */
export interface TraceInput {
  /** Model name. */
  model: string;
  /** The user's prompt. */
  input?: string | null | undefined;
  /** The AI's response. */
  output?: string | null | undefined;
  /** Input token count. */
  prompt_tokens?: number | null | undefined;
  /** Output token count. */
  completion_tokens?: number | null | undefined;
  /** Response time in milliseconds. */
  latency_ms?: number | null | undefined;
  /** Cost in US dollars. Sums are exact to 12 decimals. */
  cost_usd?: number | null | undefined;
  /** If left out: `error` if `error_message` is not empty, otherwise `success`. */
  status?: 'success' | 'error' | null | undefined;
  /** Error details if the call failed. */
  error_message?: string | null | undefined;
  /** Feature label used for analytics. */
  feature_name?: string | null | undefined;
  /** User ID used for per-user analytics. */
  user_identifier?: string | null | undefined;
  /** The exact model that answered, such as `gpt-4o-2024-08-06`, if it differs from `model`. */
  response_model?: string | null | undefined;
}

/** A stored trace. Every field is always present, except: response_model, damaged. */
export interface Trace {
  id: string;
  team_id: string;
  /** Model name. */
  model: string;
  /** The user's prompt. */
  input: string | null;
  /** The AI's response. */
  output: string | null;
  /** Input token count. */
  prompt_tokens: number | null;
  /** Output token count. */
  completion_tokens: number | null;
  /** Response time in milliseconds. */
  latency_ms: number | null;
  /** Cost in US dollars. Sums are exact to 12 decimals. */
  cost_usd: number | null;
  status: 'success' | 'error';
  /** Error details if the call failed. */
  error_message: string | null;
  /** Feature label used for analytics. */
  feature_name: string | null;
  /** User ID used for per-user analytics. */
  user_identifier: string | null;
  /** The exact model that answered, such as `gpt-4o-2024-08-06`, if it differs from `model`. */
  response_model?: string | undefined;
  /** ISO 8601 in UTC with microseconds. */
  created_at: string;
  /** Present only if stored bytes were damaged: the fields that cannot be read any more and are null here. */
  damaged?: ('input' | 'output' | 'error_message')[] | undefined;
}

/** A stored trace. On request these fields are left out: input, output, error_message. */
export interface ListedTrace {
  id: string;
  team_id: string;
  /** Model name. */
  model: string;
  /** The user's prompt. */
  input?: string | null | undefined;
  /** The AI's response. */
  output?: string | null | undefined;
  /** Input token count. */
  prompt_tokens: number | null;
  /** Output token count. */
  completion_tokens: number | null;
  /** Response time in milliseconds. */
  latency_ms: number | null;
  /** Cost in US dollars. Sums are exact to 12 decimals. */
  cost_usd: number | null;
  status: 'success' | 'error';
  /** Error details if the call failed. */
  error_message?: string | null | undefined;
  /** Feature label used for analytics. */
  feature_name: string | null;
  /** User ID used for per-user analytics. */
  user_identifier: string | null;
  /** The exact model that answered, such as `gpt-4o-2024-08-06`, if it differs from `model`. */
  response_model?: string | undefined;
  /** ISO 8601 in UTC with microseconds. */
  created_at: string;
  /** Present only if stored bytes were damaged: the fields that cannot be read any more and are null here. */
  damaged?: ('input' | 'output' | 'error_message')[] | undefined;
}

export interface TracePage {
  traces: ListedTrace[];
  /** Number of all of the team's traces. */
  total: number;
  page: number;
  /** The page size that was used. */
  limit: number;
}

/** A trace that was not stored. */
export interface Rejection {
  /** Its place in the request, from 0. */
  index: number;
  errors: {
    field: string;
    message: string;
  }[];
}

export interface BatchReply {
  /** What was stored, in order. */
  traces: ListedTrace[];
  rejected: Rejection[];
}

export interface Overview {
  total_calls: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if none has. */
  avg_latency_ms: number;
  /** Written with exactly six decimals, such as `0.001500`; rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 without calls. */
  success_rate: number;
  error_count: number;
}

export interface ModelRecord {
  model: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if none has. */
  avg_latency_ms: number;
  /** Written with exactly six decimals, such as `0.001500`; rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 without calls. */
  success_rate: number;
}

export interface FeatureRecord {
  feature_name: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if none has. */
  avg_latency_ms: number;
  /** Written with exactly six decimals, such as `0.001500`; rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 without calls. */
  success_rate: number;
}

export interface DailyRecord {
  date: string;
  label: string;
  call_count: number;
  /** Written with exactly six decimals, such as `0.001500`; rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if none has. */
  avg_latency_ms: number;
  error_count: number;
}

/** RFC 9457 problem document. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** Stable; listed in docs/errors.md. */
  code: string;
  /** Also in the header `x-request-id` and in the log. */
  request_id: string;
  /** For invalid input: one entry for each field that is wrong. */
  errors?:
    | {
        field: string;
        message: string;
      }[]
    | undefined;
}
