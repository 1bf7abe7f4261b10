import {
  afterAPause,
  answeringModel,
  askedFailure,
  lastUserText,
  startFakeProvider,
} from './fake-provider.ts';
import type { FakeProvider, ProviderRequest, Reply, SentEvent } from './fake-provider.ts';

const usage = {
  input_tokens: 200,
  cache_read_input_tokens: 1000,
  cache_creation_input_tokens: 300,
  cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
  output_tokens: 30,
  output_tokens_details: { thinking_tokens: 12 },
  service_tier: 'standard',
};
const toolPieces = ['', '{"ci', 'ty":"Par', 'is"}'];
const toolUse = { type: 'tool_use', id: 'toolu_1', name: 'weather' };

/** Speaks Anthropic's messages. What the user says decides. */
export function startFakeAnthropic(): Promise<FakeProvider> {
  return startFakeProvider({ '/v1/messages': messages });
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

function messages({ body }: ProviderRequest, reply: Reply): Promise<void> | void {
  const text = lastUserText(body['messages']);
  const status = askedFailure(text);
  if (status !== undefined) {
    const type = errorTypes[status] ?? 'api_error';
    const error = { type, message: `The fake fails with ${status}.` };
    const headers: Record<string, string> = status === 429 ? { 'retry-after-ms': '1' } : {};
    return reply.json(status, { type: 'error', error, request_id: 'req_fixed' }, headers);
  }
  // A tool's result comes as a message of the user.
  const wantsTool = text.includes('weather') && !text.includes('tool_result');
  const said = text.includes('json') ? '{"answer":4}' : 'Hello there.';
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: answeringModel(body),
    stop_sequence: null,
  };
  const stop_reason = wantsTool ? 'tool_use' : 'end_turn';
  if (body['stream'] === true) {
    return reply.events(streamEvents(message, text, said, wantsTool, stop_reason));
  }
  const block = { type: 'text', text: wantsTool ? 'I will look.' : said, citations: null };
  const content = wantsTool ? [block, { ...toolUse, input: { city: 'Paris' } }] : [block];
  return reply.json(200, { ...message, content, stop_reason, usage });
}

function streamEvents(
  message: object,
  text: string,
  said: string,
  wantsTool: boolean,
  stop_reason: string,
): readonly SentEvent[] {
  const event = (type: string, more: object = {}): SentEvent => ({
    event: type,
    data: { type, ...more },
  });
  const delta = (index: number, more: object): SentEvent =>
    event('content_block_delta', { index, delta: more });
  const piece = (words: string): SentEvent => delta(0, { type: 'text_delta', text: words });
  const start = [
    event('message_start', {
      message: {
        ...message,
        content: [],
        stop_reason: null,
        usage: { ...usage, output_tokens: 1, output_tokens_details: null },
      },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('ping'),
  ];
  const end = [
    event('message_delta', {
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: 30, output_tokens_details: usage.output_tokens_details },
    }),
    event('message_stop'),
  ];
  const stop = (index: number): SentEvent => event('content_block_stop', { index });
  if (text.includes('slow')) {
    const ticks = Array.from({ length: 500 }, () => ({ ...piece('tick '), afterMs: 10 }));
    return [...start, ...ticks, stop(0), ...end];
  }
  const words = wantsTool ? ['I will', ' look.'] : [said.slice(0, 5), said.slice(5)];
  const pieces = words.map(piece);
  const spoken = [...start, ...(text.includes('pause') ? afterAPause(pieces) : pieces)];
  if (text.includes('cut')) return [...spoken, { data: '', cut: true, afterMs: 30 }];
  if (text.includes('break off')) {
    const error = { type: 'overloaded_error', message: 'The fake broke off.' };
    return [...spoken, event('error', { error })];
  }
  if (!wantsTool) return [...spoken, stop(0), ...end];
  return [
    ...spoken,
    stop(0),
    event('content_block_start', { index: 1, content_block: { ...toolUse, input: {} } }),
    ...toolPieces.map((partial_json) => delta(1, { type: 'input_json_delta', partial_json })),
    stop(1),
    ...end,
  ];
}
