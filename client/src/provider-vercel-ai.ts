import type { Usage } from './price.ts';
import type { Answer } from './wrap-call.ts';
import type { Collector } from './wrap-stream.ts';
import { asTextWithoutBytes } from './wrap-text.ts';

interface TokenCounts {
  total?: number;
  cacheRead?: number;
  cacheWrite?: number;
}

interface Part {
  type?: string;
  text?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
}

interface Counts {
  inputTokens?: TokenCounts | number;
  outputTokens?: TokenCounts | number;
  cachedInputTokens?: number;
}

interface Generated {
  content?: Part[];
  usage?: Counts;
  response?: { modelId?: string };
}

interface StreamPart extends Part {
  delta?: string;
  modelId?: string;
  usage?: Counts;
  error?: unknown;
}

export function generatedAnswer(result: unknown): Answer {
  const { content = [], usage, response } = result as Generated;
  return { model: response?.modelId, output: outputOf(content), usage: usageOf(usage) };
}

/** The counts are objects in the newer versions of the SDK's interface and plain numbers in the older one. */
function usageOf(counts: Counts | undefined): Usage | undefined {
  if (counts === undefined) return undefined;
  const { inputTokens: input, outputTokens: output } = counts;
  const details = typeof input === 'object' ? input : undefined;
  return {
    input_tokens: totalOf(input),
    output_tokens: totalOf(output),
    cache_read_tokens: details?.cacheRead ?? counts.cachedInputTokens,
    cache_write_tokens: details?.cacheWrite,
  };
}

function totalOf(count: TokenCounts | number | undefined): number | undefined {
  return typeof count === 'object' ? count.total : count;
}

/** The text where the answer is text; what holds calls of tools as JSON. */
function outputOf(parts: readonly Part[]): string | undefined {
  const said = parts.filter(({ type }) => type !== 'reasoning' && type !== 'source');
  if (said.length === 0) return undefined;
  return said.some(({ type }) => type !== 'text')
    ? asTextWithoutBytes(said)
    : asTextWithoutBytes(said.map(({ text }) => text ?? '').join(''));
}

/** Parts of a stream that are content as they come; text comes in pieces instead. */
const wholeParts = ['tool-call', 'tool-result', 'tool-approval-request', 'file'];

/** Puts the content together from the parts of a stream. */
export class ContentCollector implements Collector {
  readonly #content: Part[] = [];
  readonly #texts = new Map<string, Part>();
  #model: string | undefined;
  #usage: Counts | undefined;
  #error: unknown;

  see(item: unknown): boolean {
    const part = item as StreamPart & { id?: string };
    const { type = '', id = '' } = part;
    if (type === 'response-metadata') this.#model = part.modelId ?? this.#model;
    else if (type === 'finish') this.#usage = part.usage;
    else if (type === 'error') this.#error = part.error ?? 'unknown error';
    else if (type === 'text-delta') this.#add(id, part.delta ?? '');
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

  answer(): Answer {
    return {
      model: this.#model,
      output: outputOf(this.#content),
      usage: usageOf(this.#usage),
      error: this.#error,
    };
  }
}
