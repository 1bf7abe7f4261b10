import type { Usage } from './usage.ts';
import type { Answer } from './wrap-call.ts';
import type { Collector } from './wrap-stream.ts';
import { asTextWithoutBytes } from './wrap-text.ts';

interface TokenCounts {
  total?: number;
  cacheRead?: number;
  cacheWrite?: number;
  reasoning?: number;
}

interface Part {
  type?: string;
  text?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  /** The input of a tool in AI SDK 4. */
  args?: unknown;
}

interface Counts {
  inputTokens?: TokenCounts | number;
  outputTokens?: TokenCounts | number;
  cachedInputTokens?: number;
  reasoningTokens?: number;
  /** The names in AI SDK 4, which uses NaN for unknown counts. */
  promptTokens?: number;
  completionTokens?: number;
}

/** AI SDK 4 has the counts of cached tokens and of reasoning tokens here. */
interface ProviderMetadata {
  openai?: { cachedPromptTokens?: unknown; reasoningTokens?: unknown };
  anthropic?: { cacheReadInputTokens?: unknown; cacheCreationInputTokens?: unknown };
}

interface Generated {
  content?: Part[];
  /** AI SDK 4 has text, files and tool calls apart. */
  text?: string;
  files?: { mimeType?: string; data?: unknown }[];
  toolCalls?: Part[];
  usage?: Counts;
  response?: { modelId?: string };
  providerMetadata?: ProviderMetadata;
}

interface StreamPart extends Part {
  delta?: string;
  /** The name of `delta` in AI SDK 4. */
  textDelta?: string;
  modelId?: string;
  usage?: Counts;
  providerMetadata?: ProviderMetadata;
  error?: unknown;
}

export function generatedAnswer(result: unknown): Answer {
  const { content, usage, response, providerMetadata, ...older } = result as Generated;
  return {
    responseModel: response?.modelId,
    output: outputOf(content ?? contentOf(older)),
    usage: usageOf(usage, providerMetadata),
  };
}

function contentOf({ text, files = [], toolCalls = [] }: Generated): Part[] {
  const texts = text === undefined || text === '' ? [] : [{ type: 'text', text }];
  const others = files.map((file) => ({ type: 'file', ...file }));
  return [...texts, ...others, ...toolCalls.map(toolCallOf)];
}

/** A tool call in the form of the newer versions. */
function toolCallOf({ toolCallId, toolName, input, args }: Part): Part {
  return {
    type: 'tool-call',
    ...(toolCallId !== undefined && { toolCallId }),
    ...(toolName !== undefined && { toolName }),
    input: input ?? args,
  };
}

function usageOf(
  counts: Counts | undefined,
  metadata: ProviderMetadata | undefined,
): Usage | undefined {
  if (counts === undefined) return undefined;
  if ('promptTokens' in counts || 'completionTokens' in counts) {
    return usageOfVersion4(counts, metadata);
  }
  // Counts are objects since version 6 of the SDK, and numbers in version 5.
  const { inputTokens: input, outputTokens: output } = counts;
  if (typeof input === 'number' && metadata?.anthropic) {
    return usageOfAnthropic5(counts, input, metadata.anthropic);
  }
  const details = typeof input === 'object' ? input : undefined;
  const outputDetails = typeof output === 'object' ? output : undefined;
  return {
    input_tokens: totalOf(input),
    output_tokens: totalOf(output),
    cache_read_tokens: details?.cacheRead ?? counts.cachedInputTokens,
    cache_write_tokens: details?.cacheWrite,
    reasoning_tokens: outputDetails?.reasoning ?? counts.reasoningTokens,
  };
}

/** The prompt tokens of Anthropic do not include cached ones there; those of other providers do. */
function usageOfVersion4(counts: Counts, metadata: ProviderMetadata | undefined): Usage {
  const input = countOf(counts.promptTokens);
  const read = countOf(metadata?.anthropic?.cacheReadInputTokens);
  const written = countOf(metadata?.anthropic?.cacheCreationInputTokens);
  return {
    input_tokens: input === undefined ? undefined : input + (read ?? 0) + (written ?? 0),
    output_tokens: countOf(counts.completionTokens),
    cache_read_tokens: countOf(metadata?.openai?.cachedPromptTokens) ?? read,
    cache_write_tokens: written,
    reasoning_tokens: countOf(metadata?.openai?.reasoningTokens),
  };
}

/** As in version 4, cached tokens are not part of the input tokens of Anthropic. */
function usageOfAnthropic5(
  counts: Counts,
  input: number,
  { cacheCreationInputTokens }: NonNullable<ProviderMetadata['anthropic']>,
): Usage {
  const read = countOf(counts.cachedInputTokens);
  const written = countOf(cacheCreationInputTokens);
  return {
    input_tokens: input + (read ?? 0) + (written ?? 0),
    output_tokens: totalOf(counts.outputTokens),
    cache_read_tokens: read,
    cache_write_tokens: written,
  };
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function totalOf(count: TokenCounts | number | undefined): number | undefined {
  return typeof count === 'object' ? count.total : count;
}

/** Plain text if the answer is text only; JSON if it contains tool calls or files. */
function outputOf(parts: readonly Part[]): string | undefined {
  const said = parts.filter(({ type }) => type !== 'reasoning' && type !== 'source');
  if (said.length === 0) return undefined;
  return said.some(({ type }) => type !== 'text')
    ? asTextWithoutBytes(said)
    : asTextWithoutBytes(said.map(({ text }) => text ?? '').join(''));
}

/** Stream parts that are complete pieces of content; text comes in deltas instead. */
const wholeParts = ['tool-result', 'tool-approval-request', 'file'];

/** Stream parts that begin the answer. `reasoning` and `tool-call-delta` are the names in AI SDK 4. */
const outputParts = [
  ...wholeParts,
  'text-delta',
  'reasoning-delta',
  'reasoning',
  'tool-input-delta',
  'tool-call-delta',
  'tool-call',
];

/** Assembles the content from the parts of a stream. */
export class ContentCollector implements Collector {
  readonly #content: Part[] = [];
  readonly #texts = new Map<string, Part>();
  #model: string | undefined;
  #usage: Usage | undefined;
  #error: unknown;
  #hasOutput = false;

  see(item: unknown): boolean {
    const part = item as StreamPart & { id?: string };
    const { type = '', id = '' } = part;
    this.#hasOutput ||= outputParts.includes(type);
    if (type === 'response-metadata') this.#model = part.modelId ?? this.#model;
    else if (type === 'finish') this.#usage = usageOf(part.usage, part.providerMetadata);
    else if (type === 'error') this.#error = part.error ?? 'unknown error';
    else if (type === 'text-delta') this.#add(id, part.delta ?? part.textDelta ?? '');
    else if (type === 'tool-call') this.#content.push('args' in part ? toolCallOf(part) : part);
    else if (wholeParts.includes(type)) this.#content.push(part);
    return true;
  }

  #add(id: string, delta: string): void {
    let open = this.#texts.get(id);
    if (open === undefined) {
      open = { type: 'text', text: '' };
      this.#texts.set(id, open);
      this.#content.push(open);
    }
    open.text = (open.text ?? '') + delta;
  }

  hasOutput(): boolean {
    return this.#hasOutput;
  }

  answer(): Answer {
    return {
      responseModel: this.#model,
      output: outputOf(this.#content),
      usage: this.#usage,
      error: this.#error,
    };
  }
}
