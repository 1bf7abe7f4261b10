import type { Usage } from './usage.ts';
import type { Answer } from './wrap-call.ts';
import type { ReadRequest } from './wrap-record.ts';
import type { Collector } from './wrap-stream.ts';
import { asText } from './wrap-text.ts';

interface ToolCall {
  index?: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments?: string };
  custom?: { name?: string; input?: string };
}

interface Message {
  content?: string | null;
  refusal?: string | null;
  tool_calls?: ToolCall[] | null;
  function_call?: unknown;
  /** The thoughts of some models of other providers with this protocol. */
  reasoning_content?: string | null;
  audio?: { transcript?: string } | null;
}

interface Counts {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: {
    cached_tokens?: number;
    cache_write_tokens?: number;
  } | null;
  completion_tokens_details?: { reasoning_tokens?: number } | null;
}

interface Completion {
  model?: string;
  choices?: { message?: Message }[];
  usage?: Counts | null;
}

interface Chunk {
  model?: string;
  choices?: { index?: number; delta?: Message }[];
  usage?: Counts | null;
}

/** The body of `chat.completions.create`. */
export const readChatRequest: ReadRequest = (body) => {
  const withUsage = askForUsage(body);
  return {
    model: body['model'],
    input: asText(body['messages']),
    ...(withUsage === undefined ? {} : { body: withUsage }),
    answer: (data) => completionAnswer(data as Completion),
    collector: () => new ChunkCollector(withUsage !== undefined),
  };
};

/**
 * Streams report their usage only on request. If the caller sets the option, including `stream_options: null`, it is not changed:
 * some servers with this protocol reject the field.
 */
function askForUsage(body: Record<string, unknown>): object | undefined {
  const options = body['stream_options'] as { include_usage?: unknown } | null | undefined;
  if (body['stream'] !== true || options === null || options?.include_usage !== undefined) {
    return undefined;
  }
  // Keeps the prototype and accessors, which an object spread would lose.
  return Object.create(Object.getPrototypeOf(body) as object, {
    ...Object.getOwnPropertyDescriptors(body),
    stream_options: {
      value: { ...options, include_usage: true },
      enumerable: true,
      configurable: true,
      writable: true,
    },
  }) as object;
}

function completionAnswer({ model, choices = [], usage }: Completion): Answer {
  const messages = choices.map(({ message }) => message ?? {});
  return { responseModel: model, output: outputOf(messages), usage: usageOf(usage) };
}

export function usageOf(counts: Counts | null | undefined): Usage | undefined {
  if (counts === null || counts === undefined) return undefined;
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = counts;
  return {
    input_tokens: counts.prompt_tokens,
    output_tokens: counts.completion_tokens,
    cache_read_tokens: prompt?.cached_tokens,
    cache_write_tokens: prompt?.cache_write_tokens,
    reasoning_tokens: completion?.reasoning_tokens,
  };
}

/** Plain text if the answer is text only; JSON for tool calls and for several choices. */
function outputOf(messages: readonly Message[]): string | undefined {
  const outputs = messages.map(messageOutput);
  return asText(outputs.length > 1 ? outputs : outputs[0]);
}

function messageOutput({ content, refusal, tool_calls: tools, function_call: fn, audio }: Message) {
  const text = content ?? refusal ?? audio?.transcript ?? null;
  const hasTools = (tools?.length ?? 0) > 0;
  if (!hasTools && (fn === undefined || fn === null)) return text;
  return {
    role: 'assistant',
    content: text,
    ...(hasTools ? { tool_calls: tools } : {}),
    ...(fn === undefined || fn === null ? {} : { function_call: fn }),
  };
}

class ChunkCollector implements Collector {
  readonly #hidesUsage: boolean;
  readonly #messages: MessageBuilder[] = [];
  #model: string | undefined;
  #counts: Counts | undefined;
  #hasOutput = false;

  constructor(hidesUsage: boolean) {
    this.#hidesUsage = hidesUsage;
  }

  see(item: unknown): boolean {
    const chunk = item as Chunk;
    this.#model ??= chunk.model;
    for (const { index = 0, delta } of chunk.choices ?? []) {
      if (delta === undefined) continue;
      this.#hasOutput ||= isOutput(delta);
      (this.#messages[index] ??= new MessageBuilder()).add(delta);
    }
    if (chunk.usage !== undefined && chunk.usage !== null) this.#counts = chunk.usage;
    return !this.#hidesUsage || isOfTheCaller(chunk);
  }

  hasOutput(): boolean {
    return this.#hasOutput;
  }

  answer(): Answer {
    const messages = this.#messages.map((builder) => builder.message());
    return {
      responseModel: this.#model,
      output: outputOf(messages),
      usage: usageOf(this.#counts),
    };
  }
}

/** The first delta has only the role. */
function isOutput(delta: Message): boolean {
  const { content, refusal, reasoning_content: thought, audio, tool_calls: tools } = delta;
  const texts = [content, refusal, thought, audio?.transcript];
  return (tools?.length ?? 0) > 0 || texts.some((text) => typeof text === 'string' && text !== '');
}

/** If the wrapper requested the usage, every chunk has the field; only the last one has a value, and nothing else. */
function isOfTheCaller(chunk: Chunk): boolean {
  if (chunk.usage === null) delete chunk.usage;
  return chunk.usage === undefined || chunk.choices?.length !== 0;
}

/** Assembles one message from its deltas. */
class MessageBuilder {
  #content: string | null = null;
  #refusal: string | null = null;
  #transcript: string | null = null;
  readonly #tools: ToolCall[] = [];

  add({ content, refusal, audio, tool_calls: tools }: Message): void {
    if (typeof content === 'string') this.#content = (this.#content ?? '') + content;
    if (typeof refusal === 'string') this.#refusal = (this.#refusal ?? '') + refusal;
    const transcript = audio?.transcript;
    if (transcript !== undefined) this.#transcript = (this.#transcript ?? '') + transcript;
    for (const piece of tools ?? []) this.#addTool(piece);
  }

  #addTool(piece: ToolCall): void {
    const index = piece.index ?? 0;
    const { id, type, function: fn, custom } = piece;
    const tool = (this.#tools[index] ??= {});
    if (id !== undefined) tool.id = id;
    if (type !== undefined) tool.type = type;
    if (fn !== undefined) {
      const known = tool.function;
      tool.function = {
        name: (known?.name ?? '') + (fn.name ?? ''),
        arguments: (known?.arguments ?? '') + (fn.arguments ?? ''),
      };
    }
    if (custom !== undefined) {
      const known = tool.custom;
      tool.custom = {
        name: (known?.name ?? '') + (custom.name ?? ''),
        input: (known?.input ?? '') + (custom.input ?? ''),
      };
    }
  }

  message(): Message {
    const audio = this.#transcript === null ? null : { transcript: this.#transcript };
    const tools = this.#tools.filter((tool) => tool !== undefined);
    return { content: this.#content, refusal: this.#refusal, audio, tool_calls: tools };
  }
}
