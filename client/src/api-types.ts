// Written by `npm run client-types` from docs/openapi.json; edits are lost.

/** Unknown fields are ignored. Null means the same as leaving the field out. */
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
  /** Cost in US dollars. Sums are exact for up to 12 decimals and 15 significant digits. */
  cost_usd?: number | null | undefined;
  /** Default: `error` if `error_message` is not empty, otherwise `success`. */
  status?: 'success' | 'error' | null | undefined;
  /** Error details if the call failed. */
  error_message?: string | null | undefined;
  /** Feature label used for analytics. */
  feature_name?: string | null | undefined;
  /** User ID used for per-user analytics. */
  user_identifier?: string | null | undefined;
  /** The exact model that answered, such as `gpt-4o-2024-08-06`, if it differs from `model`. */
  response_model?: string | null | undefined;
  /** When the call began (RFC 3339). It decides the day of the call; if left out, `created_at` does. Stored to the microsecond. */
  started_at?: string | null | undefined;
  /** Where the app runs, such as `production`. */
  environment?: string | null | undefined;
  /** The service that ran the model, such as `openai`. */
  provider?: string | null | undefined;
  /** The conversation of the call. */
  session_id?: string | null | undefined;
  /** One run of an agent. */
  run_id?: string | null | undefined;
  /** The part of `prompt_tokens` that was read from a cache. */
  cache_read_tokens?: number | null | undefined;
  /** The part of `prompt_tokens` that was written to a cache. */
  cache_write_tokens?: number | null | undefined;
  /** The part of `completion_tokens` that was spent on reasoning. */
  reasoning_tokens?: number | null | undefined;
  /** Milliseconds to the first token. */
  ttft_ms?: number | null | undefined;
  /** The kind of error, such as `rate_limit` or `timeout`. */
  error_type?: string | null | undefined;
  /** Up to 16 further names and text values. */
  metadata?: Record<string, string> | null | undefined;
}

/** A stored trace. All fields are always present, except response_model, started_at, environment, provider, session_id, run_id, cache_read_tokens, cache_write_tokens, reasoning_tokens, ttft_ms, error_type, cost_source, metadata and damaged. */
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
  /** Cost in US dollars. Sums are exact for up to 12 decimals and 15 significant digits. */
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
  /** When the call began (RFC 3339). It decides the day of the call; if left out, `created_at` does. Stored to the microsecond. */
  started_at?: string | undefined;
  /** Where the app runs, such as `production`. */
  environment?: string | undefined;
  /** The service that ran the model, such as `openai`. */
  provider?: string | undefined;
  /** The conversation of the call. */
  session_id?: string | undefined;
  /** One run of an agent. */
  run_id?: string | undefined;
  /** The part of `prompt_tokens` that was read from a cache. */
  cache_read_tokens?: number | undefined;
  /** The part of `prompt_tokens` that was written to a cache. */
  cache_write_tokens?: number | undefined;
  /** The part of `completion_tokens` that was spent on reasoning. */
  reasoning_tokens?: number | undefined;
  /** Milliseconds to the first token. */
  ttft_ms?: number | undefined;
  /** The kind of error, such as `rate_limit` or `timeout`. */
  error_type?: string | undefined;
  /** Where `cost_usd` comes from: `client` if it was sent, `computed` if the server computed it from the tokens. Present only if the server computes missing costs. */
  cost_source?: 'client' | 'computed' | undefined;
  /** Up to 16 further names and text values. */
  metadata?: Record<string, string> | undefined;
  /** ISO 8601 in UTC with microseconds. */
  created_at: string;
  /** Present only if part of the trace is damaged in the store: the fields that cannot be read. They are null or absent here. */
  damaged?: ('input' | 'output' | 'error_message' | 'metadata')[] | undefined;
}

/** A stored trace. The parameter `omit` can leave out these fields: input, output, error_message, metadata. */
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
  /** Cost in US dollars. Sums are exact for up to 12 decimals and 15 significant digits. */
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
  /** When the call began (RFC 3339). It decides the day of the call; if left out, `created_at` does. Stored to the microsecond. */
  started_at?: string | undefined;
  /** Where the app runs, such as `production`. */
  environment?: string | undefined;
  /** The service that ran the model, such as `openai`. */
  provider?: string | undefined;
  /** The conversation of the call. */
  session_id?: string | undefined;
  /** One run of an agent. */
  run_id?: string | undefined;
  /** The part of `prompt_tokens` that was read from a cache. */
  cache_read_tokens?: number | undefined;
  /** The part of `prompt_tokens` that was written to a cache. */
  cache_write_tokens?: number | undefined;
  /** The part of `completion_tokens` that was spent on reasoning. */
  reasoning_tokens?: number | undefined;
  /** Milliseconds to the first token. */
  ttft_ms?: number | undefined;
  /** The kind of error, such as `rate_limit` or `timeout`. */
  error_type?: string | undefined;
  /** Where `cost_usd` comes from: `client` if it was sent, `computed` if the server computed it from the tokens. Present only if the server computes missing costs. */
  cost_source?: 'client' | 'computed' | undefined;
  /** Up to 16 further names and text values. */
  metadata?: Record<string, string> | undefined;
  /** ISO 8601 in UTC with microseconds. */
  created_at: string;
  /** Present only if part of the trace is damaged in the store: the fields that cannot be read. They are null or absent here. */
  damaged?: ('input' | 'output' | 'error_message' | 'metadata')[] | undefined;
}

/** One page of traces. */
export interface TracePage {
  traces: ListedTrace[];
  /** Total number of the team's traces. */
  total: number;
  page: number;
  /** The page size that was used. */
  limit: number;
}

/** Traces that match a filter. */
export interface TraceList {
  traces: ListedTrace[];
  /** The page size that was used. */
  limit: number;
  /** Send it as `cursor` to continue; null if everything was searched. */
  next_cursor: string | null;
  /** The search ends after about a second, even if the page is not full: the `created_at` of the oldest trace that it looked at. Null if everything was searched, and with `order`. */
  searched_to: string | null;
}

/** A trace that was not stored. */
export interface Rejection {
  /** Index of the trace in the request, starting at 0. */
  index: number;
  errors: {
    field: string;
    message: string;
  }[];
}

/** The stored and the rejected traces. */
export interface BatchReply {
  /** The stored traces, in order. */
  traces: ListedTrace[];
  rejected: Rejection[];
}

/** The price that applies to a call. */
export interface CostPrice {
  /** A price that an operator has set, or one of the price list. */
  source: 'own' | 'list';
  /** What the price list calls the provider; null for an own price. */
  provider: string | null;
  /** What the price list calls the model, or the name that the own price is for. */
  model: string;
  /** The team if the own price is for one team; otherwise null. */
  team_id: string | null;
  /** The first day (UTC) on which it applies; null if it has none. */
  from: string | null;
}

/** One summand of a cost. */
export interface CostPart {
  /** The kind of tokens. Those that have a price of their own are not counted in `input` and `output`. `request` is a price per call. */
  kind:
    | 'input'
    | 'output'
    | 'cache_read'
    | 'cache_write'
    | 'cache_write_1h'
    | 'input_audio'
    | 'output_audio'
    | 'reasoning'
    | 'request';
  /** The number of tokens; 1 for `request`. */
  count: number;
  /** US dollars per million tokens; for `request`, per request. */
  price_usd: number;
  /** If it is the price of a tier: it applies to calls with more input tokens than this. Null for the base price. */
  above_input_tokens: number | null;
  /** Count times price, exactly. */
  usd: number;
}

/** The stored cost of a trace, and what prices give now. */
export interface TraceCost {
  /** Cost in US dollars. Sums are exact for up to 12 decimals and 15 significant digits. */
  cost_usd: number | null;
  /** Where `cost_usd` comes from: `client` if it was sent, `computed` if the server computed it from the tokens. Present only if the server computes missing costs. */
  cost_source: 'client' | 'computed' | null;
  /** Why there is no cost; null if there is one. `tokens_unknown`: the trace has no token counts. `price_unknown`: the model has no price. `tokens_unpriced`: the price does not say what these tokens cost. With `pricing_off` and `priced_later` there is a price now: the trace was posted without asking for its cost, or there was no price when it was recorded. */
  reason:
    | 'tokens_unknown'
    | 'price_unknown'
    | 'tokens_unpriced'
    | 'pricing_off'
    | 'priced_later'
    | null;
  /** Whether `tracetally reprice` would leave the cost as it is. If true and the cost was computed, it is the sum of `parts`. */
  is_current: boolean;
  /** When the call began: prices depend on it. ISO 8601 in UTC. */
  at: string;
  /** Where a price was looked for, in order, up to what was found. */
  steps: string[];
  price?: CostPrice | undefined;
  /** What `computed_usd` is the sum of. Empty if it is null. */
  parts: CostPart[];
  /** The cost by present prices: the sum of `parts`, rounded half up at 12 decimals. Null if there is none. */
  computed_usd: number | null;
}

/** Totals over the team's traces. */
export interface Overview {
  total_calls: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
  error_count: number;
}

/** Totals of one model. */
export interface ModelRecord {
  model: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
}

/** Totals of one feature. */
export interface FeatureRecord {
  feature_name: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
}

/** Totals of one user. */
export interface UserRecord {
  user_identifier: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
}

/** Totals of one environment. */
export interface EnvironmentRecord {
  environment: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
}

/** Totals of one provider. */
export interface ProviderRecord {
  provider: string;
  call_count: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
}

/** Totals of one day in the team's time zone. */
export interface DailyRecord {
  date: string;
  label: string;
  call_count: number;
  /** Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum. */
  total_cost_usd: number;
  /** Mean over the traces that have a latency, rounded half up; 0 if there are none. */
  avg_latency_ms: number;
  error_count: number;
}

/** The sums of all matching traces. */
export interface QueryTotals {
  call_count: number;
  error_count: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
  /** The exact sum, with up to 12 decimals. */
  total_cost_usd: number;
  uncosted_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  avg_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p50_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p90_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p95_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p99_latency_ms: number | null;
}

/** The sums of one group, in one interval if there are any. */
export interface QueryRow {
  /** With `interval`: its beginning as local time with offset. */
  start?: string | undefined;
  model?: string | null | undefined;
  feature_name?: string | null | undefined;
  user_identifier?: string | null | undefined;
  environment?: string | null | undefined;
  provider?: string | null | undefined;
  status?: string | null | undefined;
  error_type?: string | null | undefined;
  call_count: number;
  error_count: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
  /** The exact sum, with up to 12 decimals. */
  total_cost_usd: number;
  uncosted_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  avg_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p50_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p90_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p95_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p99_latency_ms: number | null;
}

/** The sums of the groups past `limit`. */
export interface QueryRest {
  /** With `interval`: its beginning as local time with offset. */
  start?: string | undefined;
  call_count: number;
  error_count: number;
  /** Percentage with two decimals; 0 if there are no calls. */
  success_rate: number;
  /** The exact sum, with up to 12 decimals. */
  total_cost_usd: number;
  uncosted_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  avg_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p50_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p90_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p95_latency_ms: number | null;
  /** Null if no trace has a latency. Percentiles are within 1 %. */
  p99_latency_ms: number | null;
}

/** Rows and `other` together are the totals, for every field that is a sum. */
export interface QueryReply {
  /** The beginning of the range, included; null for no beginning. */
  from: string | null;
  /** The end of the range, excluded; null for all time. */
  to: string | null;
  /** The time zone of the team. */
  time_zone: string;
  /** Best first; with `interval` by time, then best first. A field that is not set is null. */
  rows: QueryRow[];
  /** One entry, or one per interval; empty if there are no further groups. */
  other: QueryRest[];
  totals: QueryTotals;
}

/** RFC 9457 problem document. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** Stable error code; see docs/errors.md. */
  code: string;
  /** Also in the `x-request-id` header and in the server log. */
  request_id: string;
  /** Only for `invalid_input`: one entry per invalid field. */
  errors?:
    | {
        field: string;
        message: string;
      }[]
    | undefined;
}

/** Which traces an analytics question is about. */
export interface AnalyticsFilter {
  /** The first day in the time zone of the team, or an RFC 3339 time (a whole hour), included. By the time of the call: `started_at`, or `created_at` if that was not sent. */
  from?: string | undefined;
  /** The last day, included, or an RFC 3339 time (a whole hour), excluded. Default with `from`: today. */
  to?: string | undefined;
  /** Instead of `from` and `to`. `24h`: the last 24 whole hours and the current one. `7d`: the last seven days, today included. */
  last?: string | undefined;
  /** Only traces with this `model`. Repeated: with any of the values. Empty: traces with no `model`. */
  model?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `feature_name`. Repeated: with any of the values. Empty: traces with no `feature_name`. */
  feature_name?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `user_identifier`. Repeated: with any of the values. Empty: traces with no `user_identifier`. */
  user_identifier?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `environment`. Repeated: with any of the values. Empty: traces with no `environment`. */
  environment?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `provider`. Repeated: with any of the values. Empty: traces with no `provider`. */
  provider?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this status. */
  status?: 'success' | 'error' | readonly ('success' | 'error')[] | undefined;
  /** Only traces with this `error_type`. Repeated: with any of the values. Empty: traces with no `error_type`. */
  error_type?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `session_id`. Repeated: with any of the values. Empty: traces with no `session_id`. */
  session_id?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `run_id`. Repeated: with any of the values. Empty: traces with no `run_id`. */
  run_id?: string | null | readonly (string | null)[] | undefined;
  /** Only traces whose metadata has this value under NAME, which stands for any name. Repeated: any of the values. Empty: traces without such an entry. */
  metadata?: Readonly<Record<string, string | null | readonly (string | null)[]>> | undefined;
}

/** Which traces a list shows. */
export interface TraceFilter {
  /** The first day in the time zone of the team, or an RFC 3339 time, included. By the time of the call: `started_at`, or `created_at` if that was not sent. */
  from?: string | undefined;
  /** The last day, included, or an RFC 3339 time, excluded. Default with `from`: today. */
  to?: string | undefined;
  /** Instead of `from` and `to`. `24h`: the last 24 whole hours and the current one. `7d`: the last seven days, today included. */
  last?: string | undefined;
  /** Only traces with this `model`. Repeated: with any of the values. Empty: traces with no `model`. */
  model?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `feature_name`. Repeated: with any of the values. Empty: traces with no `feature_name`. */
  feature_name?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `user_identifier`. Repeated: with any of the values. Empty: traces with no `user_identifier`. */
  user_identifier?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `environment`. Repeated: with any of the values. Empty: traces with no `environment`. */
  environment?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `provider`. Repeated: with any of the values. Empty: traces with no `provider`. */
  provider?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this status. */
  status?: 'success' | 'error' | readonly ('success' | 'error')[] | undefined;
  /** Only traces with this `error_type`. Repeated: with any of the values. Empty: traces with no `error_type`. */
  error_type?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `session_id`. Repeated: with any of the values. Empty: traces with no `session_id`. */
  session_id?: string | null | readonly (string | null)[] | undefined;
  /** Only traces with this `run_id`. Repeated: with any of the values. Empty: traces with no `run_id`. */
  run_id?: string | null | readonly (string | null)[] | undefined;
  /** Only traces whose metadata has this value under NAME, which stands for any name. Repeated: any of the values. Empty: traces without such an entry. */
  metadata?: Readonly<Record<string, string | null | readonly (string | null)[]>> | undefined;
  /** Only traces whose `latency_ms` is at least this. */
  min_latency_ms?: number | undefined;
  /** Only traces whose `cost_usd` is at least this. */
  min_cost_usd?: number | undefined;
  /** Only traces with this text in `input`, `output`, `error_message`. Upper and lower case differ. */
  q?: string | undefined;
  /** Lists the traces of one session or run in the order in which the calls began. Only with `session_id` or `run_id` alone. */
  order?: 'started_at' | undefined;
}

/** The parameters of `/analytics/query` besides the filter. */
export interface QueryParameters {
  /** One or two of `model`, `feature_name`, `user_identifier`, `environment`, `provider`, `status`, `error_type`, separated by a comma. */
  group_by?: string | undefined;
  /** One row per interval in the time zone of the team. Weeks begin on Monday. */
  interval?: 'hour' | 'day' | 'week' | 'month' | undefined;
  /** How groups are ranked, over the whole range: a measure, with `-` for descending. Default: `-total_cost_usd`. */
  order?:
    | 'call_count'
    | '-call_count'
    | 'error_count'
    | '-error_count'
    | 'success_rate'
    | '-success_rate'
    | 'total_cost_usd'
    | '-total_cost_usd'
    | 'uncosted_calls'
    | '-uncosted_calls'
    | 'prompt_tokens'
    | '-prompt_tokens'
    | 'completion_tokens'
    | '-completion_tokens'
    | 'cache_read_tokens'
    | '-cache_read_tokens'
    | 'cache_write_tokens'
    | '-cache_write_tokens'
    | 'reasoning_tokens'
    | '-reasoning_tokens'
    | 'avg_latency_ms'
    | '-avg_latency_ms'
    | 'p50_latency_ms'
    | '-p50_latency_ms'
    | 'p90_latency_ms'
    | '-p90_latency_ms'
    | 'p95_latency_ms'
    | '-p95_latency_ms'
    | 'p99_latency_ms'
    | '-p99_latency_ms'
    | undefined;
  /** Adds rows with zeros for intervals without calls. */
  fill?: 'zero' | undefined;
  /** Number of groups, ranked over the whole range; the others are added up in `other`. Default: 100. */
  limit?: number | undefined;
}
