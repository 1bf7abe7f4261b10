import {
  afterAPause,
  answeringModel,
  askedFailure,
  lastUserText,
  startFakeProvider,
} from './fake-provider.ts';
import type { FakeProvider, ProviderRequest, Reply, SentEvent } from './fake-provider.ts';

const usage = {
  prompt_tokens: 1200,
  completion_tokens: 30,
  total_tokens: 1230,
  prompt_tokens_details: { cached_tokens: 1000, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 12, audio_tokens: 0 },
};
const toolPieces = ['{"ci', 'ty":"Par', 'is"}'];
const toolCall = {
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: toolPieces.join('') },
};

/** Speaks OpenAI's chat completions, responses and embeddings. What the user says decides: see `scenes` in the tests. */
export function startFakeOpenAI(): Promise<FakeProvider> {
  return startFakeProvider({
    '/v1/chat/completions': chat,
    '/v1/responses': responses,
    '/v1/embeddings': embeddings,
  });
}

function fail(status: number, reply: Reply): void {
  const type = status === 429 ? 'rate_limit_error' : 'invalid_request_error';
  const error = { message: `The fake fails with ${status}.`, type, param: null, code: null };
  reply.json(status, { error }, status === 429 ? { 'retry-after-ms': '1' } : {});
}

function chat({ body }: ProviderRequest, reply: Reply): Promise<void> | void {
  const text = lastUserText(body['messages']);
  const failure = askedFailure(text);
  if (failure !== undefined) return fail(failure, reply);
  const last = (body['messages'] as { role: string }[]).at(-1);
  const wantsTool = text.includes('weather') && last?.role !== 'tool';
  if (body['stream'] === true) return reply.events(chatChunks(body, text, wantsTool));
  const said = text.includes('json') ? '{"answer":4}' : 'Hello there.';
  const message = wantsTool
    ? { role: 'assistant', content: null, refusal: null, tool_calls: [toolCall] }
    : { role: 'assistant', content: said, refusal: null };
  const choice = { message, logprobs: null, finish_reason: wantsTool ? 'tool_calls' : 'stop' };
  const count = typeof body['n'] === 'number' ? body['n'] : 1;
  return reply.json(200, {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: answeringModel(body),
    choices: Array.from({ length: count }, (_, index) => ({ index, ...choice })),
    usage,
  });
}

function chatChunks(
  body: Record<string, unknown>,
  text: string,
  wantsTool: boolean,
): readonly SentEvent[] {
  const asked = body['stream_options'] as { include_usage?: boolean } | null | undefined;
  const hasUsage = asked?.include_usage === true;
  const chunk = (choices: unknown[], more: object = hasUsage ? { usage: null } : {}): unknown => ({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: answeringModel(body),
    choices,
    ...more,
  });
  const piece = (delta: object, finish_reason: string | null = null): SentEvent => ({
    data: chunk([{ index: 0, delta, logprobs: null, finish_reason }]),
  });
  const end: SentEvent[] = [
    piece({}, wantsTool ? 'tool_calls' : 'stop'),
    ...(hasUsage ? [{ data: chunk([], { usage }) }] : []),
    { data: '[DONE]' },
  ];
  const start = piece({ role: 'assistant', content: wantsTool ? null : '', refusal: null });
  if (wantsTool) {
    const [{ id, type, function: fn }] = [toolCall];
    const opening = { index: 0, id, type, function: { name: fn.name, arguments: '' } };
    const rest = toolPieces.map((json) =>
      piece({ tool_calls: [{ index: 0, function: { arguments: json } }] }),
    );
    return [start, piece({ tool_calls: [opening] }), ...rest, ...end];
  }
  const words = text.includes('json') ? ['{"answer"', ':4}'] : ['Hel', 'lo', ' there', '.'];
  const pieces = words.map((content) => piece({ content }));
  if (text.includes('slow')) return slowly(start, piece({ content: 'tick ' }), end);
  // Longer than any test: only a client that leaves ends it.
  if (text.includes('stall')) return [{ ...start, afterMs: 150_000 }, ...pieces, ...end];
  if (text.includes('pause')) return [start, ...afterAPause(pieces), ...end];
  if (text.includes('cut')) return [start, ...pieces, { data: '', cut: true, afterMs: 30 }];
  if (text.includes('break off')) {
    const error = { message: 'The fake broke off.', type: 'server_error', code: null };
    return [start, ...pieces, { data: { error } }];
  }
  return [start, ...pieces, ...end];
}

/** Long enough that nobody reads it to its end. */
function slowly(start: SentEvent, piece: SentEvent, end: SentEvent[]): SentEvent[] {
  const pieces = Array.from({ length: 500 }, () => ({ ...piece, afterMs: 10 }));
  return [start, ...pieces, ...end];
}

const responseUsage = {
  input_tokens: 1200,
  input_tokens_details: { cached_tokens: 1000, cache_write_tokens: 0 },
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 12 },
  total_tokens: 1230,
};

function responses({ body }: ProviderRequest, reply: Reply): Promise<void> | void {
  const text = lastUserText(body['input']);
  const failure = askedFailure(text);
  if (failure !== undefined) return fail(failure, reply);
  const said = text.includes('json') ? '{"answer":4}' : 'Hello there.';
  const item = text.includes('weather')
    ? { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{}' }
    : {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: said, annotations: [], logprobs: [] }],
      };
  const response = (status: string, more: object): object => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1_700_000_000,
    model: answeringModel(body),
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    output: [],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    usage: null,
    ...more,
  });
  const isFailed = text.includes('broken');
  const whole = isFailed
    ? response('failed', { error: { code: 'server_error', message: 'The model broke.' } })
    : response('completed', { output: [{ ...item, status: 'completed' }], usage: responseUsage });
  if (body['stream'] !== true) return reply.json(200, whole);
  const begun = response('in_progress', {});
  return reply.events(responseEvents(text, begun, item, said, whole, isFailed));
}

function responseEvents(
  text: string,
  begun: object,
  item: { type: string; id: string },
  said: string,
  whole: object,
  isFailed: boolean,
): readonly SentEvent[] {
  let sequence_number = 0;
  const event = (type: string, more: object): SentEvent => ({
    event: type,
    data: { type, sequence_number: sequence_number++, ...more },
  });
  const at = { item_id: item.id, output_index: 0 };
  const inPart = { ...at, content_index: 0 };
  const part = { type: 'output_text', text: '', annotations: [], logprobs: [] };
  const delta = (piece: string): SentEvent =>
    event('response.output_text.delta', { ...inPart, delta: piece, logprobs: [] });
  const opening = [
    event('response.created', { response: begun }),
    event('response.in_progress', { response: begun }),
  ];
  const closing = (): SentEvent[] => [
    event('response.output_item.done', { output_index: 0, item: { ...item, status: 'completed' } }),
    event('response.completed', { response: whole }),
  ];
  if (isFailed) return [...opening, event('response.failed', { response: whole })];
  const added = {
    ...item,
    status: 'in_progress',
    ...(item.type === 'message' ? { content: [] } : { arguments: '' }),
  };
  const start = [...opening, event('response.output_item.added', { output_index: 0, item: added })];
  if (item.type === 'function_call') {
    return [
      ...start,
      event('response.function_call_arguments.delta', { ...at, delta: '{}' }),
      event('response.function_call_arguments.done', { ...at, name: 'weather', arguments: '{}' }),
      ...closing(),
    ];
  }
  const opened = [...start, event('response.content_part.added', { ...inPart, part })];
  if (text.includes('slow')) {
    return [...opened, ...Array.from({ length: 500 }, () => ({ ...delta('tick '), afterMs: 10 }))];
  }
  const spoken = [delta(said.slice(0, 5)), delta(said.slice(5))];
  return [
    ...opened,
    ...(text.includes('pause') ? afterAPause(spoken) : spoken),
    event('response.output_text.done', { ...inPart, text: said, logprobs: [] }),
    event('response.content_part.done', { ...inPart, part: { ...part, text: said } }),
    ...closing(),
  ];
}

function embeddings({ body }: ProviderRequest, reply: Reply): void {
  const failure = askedFailure(String(body['input']));
  if (failure !== undefined) return fail(failure, reply);
  const vector = [0.25, -0.5, 1];
  const embedding =
    body['encoding_format'] === 'base64'
      ? Buffer.from(new Float32Array(vector).buffer).toString('base64')
      : vector;
  reply.json(200, {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding }],
    model: answeringModel(body),
    usage: { prompt_tokens: 8, total_tokens: 8 },
  });
}
