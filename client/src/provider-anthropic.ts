import type { Usage } from './usage.ts';
import type { Answer } from './wrap-call.ts';
import type { ReadRequest } from './wrap-record.ts';
import type { Collector } from './wrap-stream.ts';
import { asText } from './wrap-text.ts';

interface Counts {
  input_tokens?: number | null;
  output_tokens?: number | null;
  cache_read_input_tokens?: number | null;
  cache_creation_input_tokens?: number | null;
  output_tokens_details?: { thinking_tokens?: number } | null;
}

interface Block {
  type?: string;
  text?: string;
  input?: unknown;
}

interface Message {
  model?: string;
  content?: Block[];
  usage?: Counts | null;
}

interface StreamEvent {
  type?: string;
  index?: number;
  message?: Message;
  content_block?: Block;
  delta?: { type?: string; text?: string; partial_json?: string };
  usage?: Counts | null;
}

/** The body of `messages.create`. */
export const readMessagesRequest: ReadRequest = (body) => {
  const { model, system, messages } = body;
  return {
    model,
    input: asText(system === undefined || system === null ? messages : { system, messages }),
    answer: (data) => messageAnswer(data as Message),
    collector: () => new EventCollector(),
  };
};

function messageAnswer({ model, content = [], usage }: Message): Answer {
  return { responseModel: model, output: outputOf(content), usage: usageOf(usage) };
}

/** `input_tokens` does not include tokens that were read from the cache or written to it. */
function usageOf(counts: Counts | null | undefined): Usage | undefined {
  if (counts === null || counts === undefined) return undefined;
  const read = counts.cache_read_input_tokens ?? undefined;
  const written = counts.cache_creation_input_tokens ?? undefined;
  const input = counts.input_tokens ?? undefined;
  return {
    input_tokens: input === undefined ? undefined : input + (read ?? 0) + (written ?? 0),
    output_tokens: counts.output_tokens ?? undefined,
    cache_read_tokens: read,
    cache_write_tokens: written,
    reasoning_tokens: counts.output_tokens_details?.thinking_tokens,
  };
}

/** Plain text if the answer is text only; JSON if it contains tool calls. */
function outputOf(blocks: readonly Block[]): string | undefined {
  const said = blocks.filter(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  if (said.some(({ type }) => type !== 'text')) return asText(said);
  return said.length === 0 ? undefined : asText(said.map(({ text }) => text ?? '').join(''));
}

/** A block in progress. The input of a tool arrives as pieces of JSON. */
interface OpenBlock {
  block: Block;
  json: string;
}

class EventCollector implements Collector {
  #message: Message = {};
  readonly #blocks: OpenBlock[] = [];
  #hasOutput = false;

  see(item: unknown): boolean {
    const { type, index = 0, message, content_block: block, delta, usage } = item as StreamEvent;
    if (type === 'message_start' && message !== undefined) this.#message = { ...message };
    if (type === 'content_block_start' && block !== undefined) {
      this.#blocks[index] = { block: { ...block }, json: '' };
    }
    if (type === 'content_block_delta' && delta !== undefined) {
      this.#hasOutput = true;
      this.#grow(index, delta);
    }
    if (type === 'message_delta') this.#count(usage);
    return true;
  }

  #grow(index: number, { text, partial_json: json }: NonNullable<StreamEvent['delta']>): void {
    const open = this.#blocks[index];
    if (open === undefined) return;
    if (text !== undefined) open.block.text = (open.block.text ?? '') + text;
    open.json += json ?? '';
  }

  /** Totals of the whole message; missing ones keep the values of the start event. */
  #count(usage: Counts | null | undefined): void {
    const known = Object.entries(usage ?? {}).filter(([, count]) => count !== null);
    this.#message.usage = { ...this.#message.usage, ...Object.fromEntries(known) };
  }

  hasOutput(): boolean {
    return this.#hasOutput;
  }

  answer(): Answer {
    const content = this.#blocks.map(({ block, json }) =>
      json === '' ? block : { ...block, input: parsedOrText(json) },
    );
    return messageAnswer({ ...this.#message, content });
  }
}

/** A stream that is left early may end in the middle of the JSON. */
function parsedOrText(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return json;
  }
}
