import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a fake provider answered: what the service should know of it. */
export interface ProviderCall {
  provider: 'openai' | 'anthropic';
  model: string;
  responseModel: string | null;
  /** As in a trace: cached tokens are part of the input, reasoning tokens are part of the output. Null if the call failed. */
  tokens: Tokens | null;
  isStreamed: boolean;
  /** What the user said last, and what was answered; null for an answer without text. */
  asked: string;
  answered: string | null;
}

export interface Tokens {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
}

export interface FakeProviders {
  url: string;
  calls: ProviderCall[];
  stop(): Promise<void>;
}

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any

/**
 * Speaks OpenAI's chat completions, responses and embeddings, and Anthropic's messages. What the user says decides: "fail" fails,
 * "weather" calls a tool, "cached" reads from and writes to a cache. Every answer has other token counts, so that sums show what is missing.
 */
export async function startFakeProviders(): Promise<FakeProviders> {
  const calls: ProviderCall[] = [];
  const server = createServer((request, response) => {
    void readJson(request).then((body) => answer(request.url ?? '', body, response, calls));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readJson(request: IncomingMessage): Promise<Json> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return JSON.parse(Buffer.concat(pieces).toString() || '{}') as Json;
}

function answer(path: string, body: Json, response: ServerResponse, calls: ProviderCall[]): void {
  const provider = path.includes('/messages') ? 'anthropic' : 'openai';
  const asked = lastText(body['messages'] ?? body['input']);
  const number = calls.length + 1;
  const isEmbedding = path.endsWith('/embeddings');
  const hasTool = asked.includes('weather') && !hasToolResult(body['messages'] ?? body['input']);
  const isFailure = asked.includes('fail');
  const text = isEmbedding || hasTool || isFailure ? null : `Answer ${number} to: ${asked}`;
  const tokens: Tokens = {
    input: 1000 + number,
    output: isEmbedding ? 0 : 100 + number,
    cacheRead: asked.includes('cached') ? 600 : 0,
    cacheWrite: asked.includes('cached') && provider === 'anthropic' ? 50 : 0,
    reasoning: asked.includes('cached') && provider === 'openai' ? 40 : 0,
  };
  const call: ProviderCall = {
    provider,
    model: body['model'] as string,
    responseModel: isEmbedding || isFailure ? null : `${body['model']}-2026-08-01`,
    tokens: isFailure ? null : tokens,
    isStreamed: body['stream'] === true,
    asked,
    answered: text,
  };
  calls.push(call);
  if (isFailure) {
    const error = { message: 'The fake provider rejects this.', type: 'invalid_request_error' };
    sendJson(response, 400, provider === 'openai' ? { error } : { type: 'error', error });
  } else if (isEmbedding) sendJson(response, 200, embedding(call, tokens));
  else if (path.endsWith('/responses'))
    sendJson(response, 200, openaiResponse(call, tokens, number));
  else if (provider === 'openai') sendChat(response, body, call, tokens, number, hasTool);
  else sendMessage(response, call, tokens, number, hasTool);
}

function lastText(messages: unknown): string {
  if (typeof messages === 'string') return messages;
  const list = (Array.isArray(messages) ? messages : []) as Json[];
  if (typeof list[0] === 'string') return list[0];
  const user = list.findLast(({ role, content }) => role === 'user' && textIn(content) !== '');
  return textIn(user?.['content']);
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  const parts = (Array.isArray(content) ? content : []) as Json[];
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

function hasToolResult(messages: unknown): boolean {
  return JSON.stringify(messages).includes('Sunny');
}

/** As long and as random as real ones. */
function idOf(prefix: string, number: number): string {
  return `${prefix}${String(number).padStart(4, '0')}${crypto.randomUUID().replaceAll('-', '').slice(0, 20)}`;
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: readonly [string | null, unknown][]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [name, data] of events) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${name === null ? '' : `event: ${name}\n`}data: ${text}\n\n`);
  }
  response.end();
}

// --- OpenAI ---

function chatUsage({ input, output, cacheRead, reasoning }: Tokens): Json {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 },
  };
}

const toolArguments = '{"city":"Paris"}';

function sendChat(
  response: ServerResponse,
  body: Json,
  { responseModel, answered, isStreamed }: ProviderCall,
  tokens: Tokens,
  number: number,
  hasTool: boolean,
): void {
  const base = { id: idOf('chatcmpl-', number), created: 1_790_000_000, model: responseModel };
  const toolCall = {
    id: idOf('call_', number),
    type: 'function',
    function: { name: 'weather', arguments: toolArguments },
  };
  const finish = hasTool ? 'tool_calls' : 'stop';
  if (!isStreamed) {
    const message = { role: 'assistant', content: answered, refusal: null };
    const whole = hasTool ? { ...message, tool_calls: [toolCall] } : message;
    const choices = [{ index: 0, message: whole, logprobs: null, finish_reason: finish }];
    sendJson(response, 200, {
      ...base,
      object: 'chat.completion',
      choices,
      usage: chatUsage(tokens),
    });
    return;
  }
  const chunk = (delta: Json, finish_reason: string | null = null): [null, unknown] => [
    null,
    { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] },
  ];
  const words = (answered ?? '').split(/(?<= )/);
  const pieces = hasTool
    ? [chunk({ tool_calls: [{ index: 0, ...toolCall }] })]
    : words.map((content) => chunk({ content }));
  const hasUsage = body['stream_options']?.include_usage === true;
  const usage = { ...base, object: 'chat.completion.chunk', choices: [], usage: chatUsage(tokens) };
  sendEvents(response, [
    chunk({ role: 'assistant', content: hasTool ? null : '' }),
    ...pieces,
    chunk({}, finish),
    ...(hasUsage ? [[null, usage] as [null, unknown]] : []),
    [null, '[DONE]'],
  ]);
}

function openaiResponse({ responseModel, answered }: ProviderCall, tokens: Tokens, number: number) {
  const content = [{ type: 'output_text', text: answered, annotations: [], logprobs: [] }];
  return {
    id: idOf('resp_', number),
    object: 'response',
    created_at: 1_790_000_000,
    status: 'completed',
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: responseModel,
    output: [
      {
        type: 'message',
        id: idOf('msg_', number),
        role: 'assistant',
        status: 'completed',
        content,
      },
    ],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    usage: {
      input_tokens: tokens.input,
      input_tokens_details: { cached_tokens: tokens.cacheRead, cache_write_tokens: 0 },
      output_tokens: tokens.output,
      output_tokens_details: { reasoning_tokens: tokens.reasoning },
      total_tokens: tokens.input + tokens.output,
    },
  };
}

function embedding({ model }: ProviderCall, { input }: Tokens) {
  return {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: [0.1, 0.2, 0.3] }],
    model,
    usage: { prompt_tokens: input, total_tokens: input },
  };
}

// --- Anthropic, which reports cached tokens apart from the others ---

function sendMessage(
  response: ServerResponse,
  { responseModel, answered, isStreamed }: ProviderCall,
  { input, output, cacheRead, cacheWrite }: Tokens,
  number: number,
  hasTool: boolean,
): void {
  const usage = {
    input_tokens: input - cacheRead - cacheWrite,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
  };
  const block = hasTool
    ? { type: 'tool_use', id: idOf('toolu_', number), name: 'weather', input: { city: 'Paris' } }
    : { type: 'text', text: answered };
  const message = {
    id: idOf('msg_01', number),
    type: 'message',
    role: 'assistant',
    model: responseModel,
    content: [block],
    stop_reason: hasTool ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage,
  };
  if (!isStreamed) {
    sendJson(response, 200, message);
    return;
  }
  const delta = hasTool
    ? { type: 'input_json_delta', partial_json: toolArguments }
    : { type: 'text_delta', text: answered };
  const opening = hasTool ? { ...block, input: {} } : { type: 'text', text: '' };
  const begun = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...usage, output_tokens: 1 },
  };
  const events: [string, Json][] = [
    ['message_start', { message: begun }],
    ['content_block_start', { index: 0, content_block: opening }],
    ['content_block_delta', { index: 0, delta }],
    ['content_block_stop', { index: 0 }],
    [
      'message_delta',
      {
        delta: { stop_reason: message.stop_reason, stop_sequence: null },
        usage: { output_tokens: output },
      },
    ],
    ['message_stop', {}],
  ];
  sendEvents(
    response,
    events.map(([type, data]) => [type, { type, ...data }]),
  );
}
