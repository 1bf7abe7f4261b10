import type { TraceDraft, TraceStatus } from '../../core/trace-fields.ts';

/**
 * The one mapping from the attributes of spans, log records and LiteLLM's payloads to the fields of a trace: for each field the names in
 * order of preference. The sources of the names are in docs/opentelemetry.md.
 */
const fieldRows = {
  model: [
    'gen_ai.request.model',
    'ai.model.id',
    'llm.request.model_name',
    'llm.invocation_parameters.model',
    'langfuse.observation.model.name',
    'langsmith.metadata.ls_model_name',
    'llm.request.model',
    'gen_ai.response.model',
    'llm.model_name',
    'llm.response.model_name',
    'embedding.model_name',
    'ai.response.model',
    'standard_logging.model_group',
    'standard_logging.model',
    'model',
    'model_name',
  ],
  response_model: [
    'gen_ai.response.model',
    'llm.response.model_name',
    'ai.response.model',
    'llm.response.model',
    'llm.model_name',
    'standard_logging.response.model',
  ],
  provider: [
    'gen_ai.provider.name',
    'gen_ai.system',
    'llm.provider',
    'llm.system',
    'ai.model.provider',
    'langsmith.metadata.ls_provider',
    'standard_logging.custom_llm_provider',
  ],
  input: [
    'gen_ai.input.messages',
    'ai.prompt.messages',
    'ai.prompt',
    'ai.values',
    'ai.value',
    'langfuse.observation.input',
    'gen_ai.prompt',
    'input.value',
    'traceloop.entity.input',
    'request_text',
    'standard_logging.messages',
    'all_messages_events',
    'events',
  ],
  output: [
    'gen_ai.output.messages',
    'ai.response.text',
    'ai.response.object',
    'langfuse.observation.output',
    'gen_ai.completion',
    'output.value',
    'traceloop.entity.output',
    'response_text',
    'standard_logging.response',
  ],
  prompt_tokens: [
    'gen_ai.usage.input_tokens',
    'llm.token_count.prompt',
    'gen_ai.usage.prompt_tokens',
    'llm.usage.prompt_tokens',
    'ai.usage.inputTokens',
    'ai.usage.promptTokens',
    'ai.usage.tokens',
    'langfuse.observation.usage_details.input',
    'langfuse.observation.usage_details.prompt_tokens',
    'standard_logging.prompt_tokens',
    'input_token_count',
    'input_tokens',
  ],
  completion_tokens: [
    'gen_ai.usage.output_tokens',
    'llm.token_count.completion',
    'gen_ai.usage.completion_tokens',
    'llm.usage.completion_tokens',
    'ai.usage.outputTokens',
    'ai.usage.completionTokens',
    'langfuse.observation.usage_details.output',
    'langfuse.observation.usage_details.completion_tokens',
    'standard_logging.completion_tokens',
    'output_token_count',
    'output_tokens',
  ],
  cache_read_tokens: [
    'gen_ai.usage.cache_read.input_tokens',
    'llm.token_count.prompt_details.cache_read',
    'gen_ai.usage.cache_read_input_tokens',
    'gen_ai.usage.input_tokens.cached',
    'gen_ai.usage.details.cache_read_tokens',
    'gen_ai.usage.details.cache_read_input_tokens',
    'gen_ai.usage.details.cached_tokens',
    'llm.usage.cache_read_input_tokens',
    'ai.usage.inputTokenDetails.cacheReadTokens',
    'ai.usage.cachedInputTokens',
    'ai.response.providerMetadata.anthropic.usage.cache_read_input_tokens',
    'gen_ai.usage.raw.cache_read_input_tokens',
    'gen_ai.usage.raw.prompt_tokens_details.cached_tokens',
    'gen_ai.usage.raw.input_tokens_details.cached_tokens',
    'langfuse.observation.usage_details.cache_read_input_tokens',
    'langfuse.observation.usage_details.input_cached_tokens',
    'standard_logging.metadata.usage_object.prompt_tokens_details.cached_tokens',
    'standard_logging.metadata.usage_object.cache_read_input_tokens',
    'cache_read_tokens',
    'cached_token_count',
    'cached_content_token_count',
  ],
  cache_write_tokens: [
    'gen_ai.usage.cache_write.input_tokens',
    'gen_ai.usage.cache_creation.input_tokens',
    'llm.token_count.prompt_details.cache_write',
    'gen_ai.usage.cache_creation_input_tokens',
    'gen_ai.usage.details.cache_write_tokens',
    'gen_ai.usage.details.cache_creation_input_tokens',
    'llm.usage.cache_creation_input_tokens',
    'ai.usage.inputTokenDetails.cacheWriteTokens',
    'ai.response.providerMetadata.anthropic.usage.cache_creation_input_tokens',
    'gen_ai.usage.raw.cache_creation_input_tokens',
    'langfuse.observation.usage_details.cache_creation_input_tokens',
    'standard_logging.metadata.usage_object.cache_creation_input_tokens',
    'cache_creation_tokens',
    'cache_write_token_count',
  ],
  reasoning_tokens: [
    'gen_ai.usage.reasoning.output_tokens',
    'llm.token_count.completion_details.reasoning',
    'gen_ai.usage.reasoning_tokens',
    'gen_ai.usage.details.reasoning_tokens',
    'llm.usage.reasoning_tokens',
    'ai.usage.outputTokenDetails.reasoningTokens',
    'ai.usage.reasoningTokens',
    'gen_ai.usage.raw.completion_tokens_details.reasoning_tokens',
    'gen_ai.usage.raw.output_tokens_details.reasoning_tokens',
    'langfuse.observation.usage_details.output_reasoning_tokens',
    'standard_logging.metadata.usage_object.completion_tokens_details.reasoning_tokens',
    'reasoning_token_count',
    'thoughts_token_count',
  ],
  cost_usd: [
    'gen_ai.usage.cost',
    'gen_ai.cost.total_cost',
    'gen_ai.cost.total',
    'operation.cost',
    'llm.cost.total',
    'litellm.cost.total',
    'litellm.cost.total_cost',
    'langfuse.observation.cost_details.total',
    'standard_logging.response_cost',
    'cost_usd_micros',
    'cost_usd',
  ],
  latency_ms: ['duration_ms', 'standard_logging.response_time'],
  ttft_ms: [
    'gen_ai.response.time_to_first_chunk',
    'gen_ai.client.operation.time_to_first_chunk',
    'ai.response.msToFirstChunk',
    'ttft_ms',
  ],
  session_id: [
    'gen_ai.conversation.id',
    'session.id',
    'conversation.id',
    'langfuse.session.id',
    'langsmith.trace.session_id',
    'langsmith.metadata.thread_id',
    'traceloop.association.properties.session_id',
    'ai.telemetry.metadata.sessionId',
    'ai.settings.context.sessionId',
    'standard_logging.metadata.requester_metadata.session_id',
  ],
  user_identifier: [
    'user.id',
    'enduser.id',
    'langfuse.user.id',
    'gen_ai.user',
    'llm.user',
    'traceloop.association.properties.user_id',
    'ai.telemetry.metadata.userId',
    'ai.settings.context.userId',
    'litellm.end_user.id',
    'standard_logging.end_user',
    'standard_logging.metadata.user_api_key_end_user_id',
    'standard_logging.metadata.user_api_key_user_id',
    'user.email',
    'user.account_uuid',
  ],
  feature_name: [
    'gen_ai.agent.name',
    'gen_ai.prompt.name',
    'ai.telemetry.functionId',
    'traceloop.workflow.name',
    'standard_logging.metadata.requester_metadata.feature_name',
    'standard_logging.metadata.user_api_key_alias',
    'service.name',
  ],
  environment: [
    'deployment.environment.name',
    'deployment.environment',
    'langfuse.environment',
    'standard_logging.metadata.requester_metadata.environment',
  ],
  run_id: ['standard_logging.trace_id', 'prompt.id'],
  error_type: [
    'error.type',
    'error_type',
    'exception.type',
    'standard_logging.error_information.error_class',
    'status_code',
  ],
  error_message: [
    'error.message',
    'error_message',
    'exception.message',
    'langfuse.observation.status_message',
    'standard_logging.error_information.error_message',
    'standard_logging.error_str',
    'error',
  ],
} as const satisfies { [N in keyof TraceDraft]?: readonly string[] };

/** What decides whether it is a model call, and how its values are to be read. */
const otherRows = {
  operation: ['gen_ai.operation.name'],
  openInferenceKind: ['openinference.span.kind'],
  aiOperation: ['ai.operationId'],
  langfuseType: ['langfuse.observation.type'],
  langsmithKind: ['langsmith.span.kind'],
  traceloopKind: ['traceloop.span.kind'],
  requestType: ['llm.request.type'],
  eventName: ['event.name'],
  eventKind: ['event.kind'],
  service: ['service.name'],
  errorType: ['error.type'],
  level: ['langfuse.observation.level', 'standard_logging.status'],
  agent: ['gen_ai.agent.name', 'agent_name'],
  systemInstructions: ['gen_ai.system_instructions'],
  toolCalls: ['ai.response.toolCalls'],
  /** What the provider called its response. A name belongs here only if no emitter gives the same value to two calls. */
  responseId: ['gen_ai.response.id', 'ai.response.id', 'llm.response.id'],
  /** In Claude Code's signals the provider's id of a call; elsewhere often the id of a web request. */
  requestId: ['request_id'],
  litellmId: ['standard_logging.id'],
  litellmCallType: ['standard_logging.call_type'],
  finishReason: ['gen_ai.response.finish_reasons', 'ai.response.finishReason'],
  totalTokens: [
    'gen_ai.usage.total_tokens',
    'llm.token_count.total',
    'llm.usage.total_tokens',
    'ai.usage.totalTokens',
    'total_token_count',
    'tool_token_count',
    'standard_logging.total_tokens',
  ],
  /** Anthropic's own count, without cached tokens. */
  uncachedTokens: ['ai.response.providerMetadata.anthropic.usage.input_tokens'],
  momentSeconds: ['duration'],
  eventSequence: ['event.sequence', 'event.timestamp'],
} as const;

export const callTable = withOwnNames({ ...fieldRows, ...otherRows });
export type Row = keyof typeof fieldRows | keyof typeof otherRows;
export type RowIndex = number;

/** Every field can be set under its own name, such as `tracetally.feature_name`, which takes precedence. */
function withOwnNames(rows: Readonly<Record<Row, readonly string[]>>) {
  const entries = Object.entries(rows).map(([row, names]) =>
    row in fieldRows ? [row, [`tracetally.${row}`, ...names]] : [row, names],
  );
  return Object.fromEntries(entries) as Readonly<Record<Row, readonly string[]>>;
}

/** Numbers that come in another unit: what one of them is in ours. */
export const units: Readonly<Record<string, number>> = {
  'gen_ai.response.time_to_first_chunk': 1000,
  'gen_ai.client.operation.time_to_first_chunk': 1000,
  'standard_logging.response_time': 1000,
  cost_usd_micros: 1e-6,
};

/** Attributes whose value is a JSON object with values that the table names. */
export const jsonAttributes: ReadonlySet<string> = new Set([
  'langfuse.observation.usage_details',
  'langfuse.observation.cost_details',
  'llm.invocation_parameters',
  'gen_ai.usage.raw',
  'ai.response.providerMetadata',
]);

/** Lists of messages whose attributes have the position in their names. */
export const indexedPrefixes = {
  input: ['llm.input_messages.', 'gen_ai.prompt.'],
  output: ['llm.output_messages.', 'gen_ai.completion.'],
} as const;

/** What the times, the status and the texts of a signal say. Null if it says nothing. */
export interface SignalFacts {
  startedAtUs: number | null;
  /** Between the times of a span. */
  durationMs: number | null;
  /** Of a log record, which is written at the end of the call. */
  endUs: number | null;
  traceId: string | null;
  status: TraceStatus;
  errorMessage: string | null;
  errorType: string | null;
  input: string | null;
  output: string | null;
}

/** Adds them to the fields that the attributes have set. */
export function addFacts(draft: TraceDraft, facts: SignalFacts): void {
  draft.latency_ms = facts.durationMs ?? draft.latency_ms;
  draft.started_at =
    facts.startedAtUs ??
    (facts.endUs === null ? null : facts.endUs - 1000 * (draft.latency_ms ?? 0));
  draft.run_id ??= facts.traceId;
  draft.status = facts.status;
  draft.input = facts.input;
  draft.output = facts.output;
  if (draft.response_model === draft.model) draft.response_model = null;
  if (facts.status === 'error') {
    draft.error_message = facts.errorMessage ?? draft.error_message;
    draft.error_type ??= facts.errorType;
  } else {
    draft.error_message = draft.error_type = null;
  }
}
