import { noRank, rowIndex } from './attributes.ts';
import type { Row } from './call-table.ts';
import type { AttributeValue, Signal } from './signal.ts';

/**
 * Whether a span or log record is a model call. Spans of agents, chains, tools and workflows often repeat the model and the sums of
 * tokens of the calls inside of them, so they must not be counted. The most specific convention decides.
 */
export function isModelCall(signal: Signal): boolean {
  if (signal.scope === litellmScope) return has(signal, 'model');
  return signal.kind === 'span' ? isCallSpan(signal) : isCallLog(signal);
}

/** Of the payloads of LiteLLM's `generic_api` callback, which are calls unless they are of an API without a model. */
export const litellmScope = 'litellm/standard-logging';

const openInferenceCalls = new Set(['LLM', 'EMBEDDING']);
const langfuseCalls = new Set(['generation', 'embedding']);
const langsmithCalls = new Set(['llm', 'embedding']);
const operations = new Set(['chat', 'text_completion', 'generate_content', 'embeddings', 'rerank']);
const requestTypes = new Set(['chat', 'completion', 'embedding', 'rerank']);
/** The span inside of LiteLLM's own with the request in the form of the provider. */
const rawLitellmSpan = 'raw_gen_ai_request';

function isCallSpan(signal: Signal): boolean {
  const { name } = signal;
  // Coding agents report every call as a log record. Their spans repeat it, with the same id if there is one.
  if (name.startsWith(claudeCode)) {
    return name === 'claude_code.llm_request' && has(signal, 'requestId');
  }
  if (name === rawLitellmSpan || isGeminiCli(signal)) return false;
  const own = text(signal, 'openInferenceKind');
  if (own !== null) return openInferenceCalls.has(own.toUpperCase());
  const aiOperation = text(signal, 'aiOperation');
  if (aiOperation !== null) return /^ai\.\w+\.do[A-Z]/.test(aiOperation);
  const langfuseType = text(signal, 'langfuseType');
  if (langfuseType !== null) return langfuseCalls.has(langfuseType);
  const langsmithKind = text(signal, 'langsmithKind');
  if (langsmithKind !== null) return langsmithCalls.has(langsmithKind);
  if (has(signal, 'traceloopKind')) return false;
  const operation = text(signal, 'operation');
  if (operation !== null) return operations.has(operation) && isAnswered(signal);
  const requestType = text(signal, 'requestType');
  if (requestType !== null) return requestTypes.has(requestType);
  return (
    has(signal, 'model') && has(signal, 'provider') && hasUsage(signal) && !has(signal, 'agent')
  );
}

/** Some emitters have an outer span with the name of the same operation, but without what the provider answered. */
function isAnswered(signal: Signal): boolean {
  return (
    hasUsage(signal) ||
    signal.isError ||
    has(signal, 'error_type') ||
    has(signal, 'responseId') ||
    has(signal, 'finishReason')
  );
}

function hasUsage(signal: Signal): boolean {
  return has(signal, 'prompt_tokens') || has(signal, 'completion_tokens');
}

/** The same calls once more, for conventions that have their own events. */
const details = 'gen_ai.client.inference.operation.details';
const logsOfCalls = new Set([
  'claude_code.api_request',
  'claude_code.api_error',
  'gemini_cli.api_response',
  'gemini_cli.api_error',
]);

function isCallLog(signal: Signal): boolean {
  const name = eventNameOf(signal);
  // Codex has one more event of this kind for the same response, without the tokens.
  if (name === 'codex.sse_event') {
    return text(signal, 'eventKind') === 'response.completed' && hasUsage(signal);
  }
  if (name === details) return !isGeminiCli(signal) && isAnswered(signal);
  return logsOfCalls.has(name);
}

/** Claude Code has its prefix only in the body. */
export function eventNameOf(signal: Signal): string {
  const named = text(signal, 'eventName');
  const { name } = signal;
  return named === null || name.endsWith(`.${named}`) ? name : named;
}

/** The events of a call's own span; other log records may only happen to be inside of the same span. */
export function isEventOfOwnSpan(signal: Signal): boolean {
  return eventNameOf(signal) === details;
}

/** The coding agent that reported the call; null if it was not one. */
export function agentOf(signal: Signal): CodingAgent | null {
  const name = signal.kind === 'span' ? signal.name : eventNameOf(signal);
  return agents.find(({ prefix }) => name.startsWith(prefix)) ?? null;
}

export interface CodingAgent {
  prefix: string;
  /** Unless the signal says otherwise. */
  provider: string;
  /** What its counts do not include. */
  separate: 'cached' | 'reasoning' | null;
}

const claudeCode = 'claude_code.';
const agents: readonly CodingAgent[] = [
  { prefix: claudeCode, provider: 'anthropic', separate: 'cached' },
  { prefix: 'codex.', provider: 'openai', separate: null },
  { prefix: 'gemini_cli.', provider: 'gcp.gemini', separate: 'reasoning' },
];

function isGeminiCli({ resource }: Signal): boolean {
  return resource.value(rowIndex.service) === 'gemini-cli';
}

export function isClaudeCode(signal: Signal): boolean {
  return agentOf(signal)?.prefix === claudeCode;
}

export function isErrorEvent(signal: Signal): boolean {
  return signal.kind === 'log' && eventNameOf(signal).endsWith('.api_error');
}

function has({ attributes }: Signal, row: Row): boolean {
  return attributes.rank(rowIndex[row]) !== noRank;
}

function text({ attributes }: Signal, row: Row): string | null {
  const value: AttributeValue | undefined = attributes.value(rowIndex[row]);
  return typeof value === 'string' ? value : null;
}
