import type { Usage } from './usage.ts';
import type { Answer } from './wrap-call.ts';
import type { ReadRequest } from './wrap-record.ts';
import type { Collector } from './wrap-stream.ts';
import { asText } from './wrap-text.ts';

interface Part {
  type?: string;
  text?: string;
  refusal?: string;
}

interface Item {
  type?: string;
  content?: Part[];
}

interface ResponseBody {
  model?: string;
  status?: string;
  output?: Item[];
  error?: { code?: string; message?: string } | null;
  usage?: {
    input_tokens?: number;
    output_tokens?: number;
    input_tokens_details?: { cached_tokens?: number; cache_write_tokens?: number } | null;
    output_tokens_details?: { reasoning_tokens?: number } | null;
  } | null;
}

interface StreamEvent {
  type?: string;
  response?: ResponseBody;
  item?: Item;
  delta?: string;
}

/** The body of `responses.create`. */
export const readResponsesRequest: ReadRequest = (body) => {
  const { model, input, instructions } = body;
  const hasInstructions = instructions !== undefined && instructions !== null;
  return {
    model,
    input: asText(hasInstructions ? { instructions, input } : input),
    answer: (data) => responseAnswer(data as ResponseBody),
    collector: () => new EventCollector(),
  };
};

function responseAnswer({ model, status, output = [], error, usage }: ResponseBody): Answer {
  return {
    responseModel: model,
    output: outputOf(output),
    usage: usageOf(usage),
    error: status === 'failed' ? (error ?? 'The response failed.') : undefined,
  };
}

function usageOf(counts: ResponseBody['usage']): Usage | undefined {
  if (counts === null || counts === undefined) return undefined;
  return {
    input_tokens: counts.input_tokens,
    output_tokens: counts.output_tokens,
    cache_read_tokens: counts.input_tokens_details?.cached_tokens,
    cache_write_tokens: counts.input_tokens_details?.cache_write_tokens,
    reasoning_tokens: counts.output_tokens_details?.reasoning_tokens,
  };
}

/** Plain text if the answer is text only; JSON if it contains tool calls. */
function outputOf(items: readonly Item[]): string | undefined {
  const said = items.filter(({ type }) => type !== 'reasoning');
  if (said.some(({ type }) => type !== 'message')) return asText(said);
  const parts = said.flatMap(({ content = [] }) => content);
  return parts.length === 0
    ? undefined
    : asText(parts.map(({ text, refusal }) => text ?? refusal ?? '').join(''));
}

/** The last event contains the whole answer. If the stream ends before it, the items and the text so far are the answer. */
class EventCollector implements Collector {
  #response: ResponseBody = {};
  readonly #items: Item[] = [];
  #text = '';
  #hasOutput = false;

  see(item: unknown): boolean {
    const { type, response, item: outputItem, delta } = item as StreamEvent;
    // Text, arguments of a tool and summaries of thoughts all arrive in such events.
    if (type?.endsWith('.delta') === true) this.#hasOutput = true;
    if (response !== undefined) this.#response = response;
    if (type === 'response.output_text.delta' || type === 'response.refusal.delta') {
      this.#text += delta ?? '';
    }
    if (type === 'response.output_item.done' && outputItem !== undefined) {
      this.#items.push(outputItem);
      if (outputItem.type === 'message') this.#text = '';
    }
    return true;
  }

  hasOutput(): boolean {
    return this.#hasOutput;
  }

  answer(): Answer {
    const { output: whole = [] } = this.#response;
    const open = { type: 'message', content: [{ type: 'output_text', text: this.#text }] };
    const seen = this.#text === '' ? this.#items : [...this.#items, open];
    return responseAnswer({ ...this.#response, output: whole.length > 0 ? whole : seen });
  }
}
