// Written by `npm run client-types` from docs/openapi.json; edits are lost.

import type {
  Trace,
  ListedTrace,
  TracePage,
  TraceList,
  Rejection,
  BatchReply,
  CostPrice,
  CostPart,
  TraceCost,
  Overview,
  ModelRecord,
  FeatureRecord,
  UserRecord,
  EnvironmentRecord,
  ProviderRecord,
  DailyRecord,
  QueryTotals,
  QueryRow,
  QueryRest,
  QueryReply,
} from './api-types.ts';
import type { Shape } from './reply-check.ts';

export const traceShape: Shape<Trace> = {
  id: 'string',
  team_id: 'string',
  model: 'string',
  input: 'string|null',
  output: 'string|null',
  prompt_tokens: 'number|null',
  completion_tokens: 'number|null',
  latency_ms: 'number|null',
  cost_usd: 'number|null',
  status: 'string',
  error_message: 'string|null',
  feature_name: 'string|null',
  user_identifier: 'string|null',
  created_at: 'string',
};

export const listedTraceShape: Shape<ListedTrace> = {
  id: 'string',
  team_id: 'string',
  model: 'string',
  prompt_tokens: 'number|null',
  completion_tokens: 'number|null',
  latency_ms: 'number|null',
  cost_usd: 'number|null',
  status: 'string',
  feature_name: 'string|null',
  user_identifier: 'string|null',
  created_at: 'string',
};

export const tracePageShape: Shape<TracePage> = {
  traces: [listedTraceShape],
  total: 'number',
  page: 'number',
  limit: 'number',
};

export const traceListShape: Shape<TraceList> = {
  traces: [listedTraceShape],
  limit: 'number',
  next_cursor: 'string|null',
  searched_to: 'string|null',
};

export const rejectionShape: Shape<Rejection> = {
  index: 'number',
  errors: [{ field: 'string', message: 'string' }],
};

export const batchReplyShape: Shape<BatchReply> = {
  traces: [listedTraceShape],
  rejected: [rejectionShape],
};

export const costPriceShape: Shape<CostPrice> = {
  source: 'string',
  provider: 'string|null',
  model: 'string',
  team_id: 'string|null',
  from: 'string|null',
};

export const costPartShape: Shape<CostPart> = {
  kind: 'string',
  count: 'number',
  price_usd: 'number',
  above_input_tokens: 'number|null',
  usd: 'number',
};

export const traceCostShape: Shape<TraceCost> = {
  cost_usd: 'number|null',
  cost_source: 'string|null',
  reason: 'string|null',
  is_current: 'boolean',
  at: 'string',
  steps: ['string'],
  parts: [costPartShape],
  computed_usd: 'number|null',
};

export const overviewShape: Shape<Overview> = {
  total_calls: 'number',
  avg_latency_ms: 'number',
  total_cost_usd: 'number',
  success_rate: 'number',
  error_count: 'number',
};

export const modelRecordShape: Shape<ModelRecord> = {
  model: 'string',
  call_count: 'number',
  avg_latency_ms: 'number',
  total_cost_usd: 'number',
  success_rate: 'number',
};

export const featureRecordShape: Shape<FeatureRecord> = {
  feature_name: 'string',
  call_count: 'number',
  avg_latency_ms: 'number',
  total_cost_usd: 'number',
  success_rate: 'number',
};

export const userRecordShape: Shape<UserRecord> = {
  user_identifier: 'string',
  call_count: 'number',
  avg_latency_ms: 'number',
  total_cost_usd: 'number',
  success_rate: 'number',
};

export const environmentRecordShape: Shape<EnvironmentRecord> = {
  environment: 'string',
  call_count: 'number',
  avg_latency_ms: 'number',
  total_cost_usd: 'number',
  success_rate: 'number',
};

export const providerRecordShape: Shape<ProviderRecord> = {
  provider: 'string',
  call_count: 'number',
  avg_latency_ms: 'number',
  total_cost_usd: 'number',
  success_rate: 'number',
};

export const dailyRecordShape: Shape<DailyRecord> = {
  date: 'string',
  label: 'string',
  call_count: 'number',
  total_cost_usd: 'number',
  avg_latency_ms: 'number',
  error_count: 'number',
};

export const queryTotalsShape: Shape<QueryTotals> = {
  call_count: 'number',
  error_count: 'number',
  success_rate: 'number',
  total_cost_usd: 'number',
  uncosted_calls: 'number',
  prompt_tokens: 'number',
  completion_tokens: 'number',
  cache_read_tokens: 'number',
  cache_write_tokens: 'number',
  reasoning_tokens: 'number',
  avg_latency_ms: 'number|null',
  p50_latency_ms: 'number|null',
  p90_latency_ms: 'number|null',
  p95_latency_ms: 'number|null',
  p99_latency_ms: 'number|null',
};

export const queryRowShape: Shape<QueryRow> = {
  call_count: 'number',
  error_count: 'number',
  success_rate: 'number',
  total_cost_usd: 'number',
  uncosted_calls: 'number',
  prompt_tokens: 'number',
  completion_tokens: 'number',
  cache_read_tokens: 'number',
  cache_write_tokens: 'number',
  reasoning_tokens: 'number',
  avg_latency_ms: 'number|null',
  p50_latency_ms: 'number|null',
  p90_latency_ms: 'number|null',
  p95_latency_ms: 'number|null',
  p99_latency_ms: 'number|null',
};

export const queryRestShape: Shape<QueryRest> = {
  call_count: 'number',
  error_count: 'number',
  success_rate: 'number',
  total_cost_usd: 'number',
  uncosted_calls: 'number',
  prompt_tokens: 'number',
  completion_tokens: 'number',
  cache_read_tokens: 'number',
  cache_write_tokens: 'number',
  reasoning_tokens: 'number',
  avg_latency_ms: 'number|null',
  p50_latency_ms: 'number|null',
  p90_latency_ms: 'number|null',
  p95_latency_ms: 'number|null',
  p99_latency_ms: 'number|null',
};

export const queryReplyShape: Shape<QueryReply> = {
  from: 'string|null',
  to: 'string|null',
  time_zone: 'string',
  rows: [queryRowShape],
  other: [queryRestShape],
  totals: queryTotalsShape,
};
