import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hexId, logsRequest, otlpAttributes, spanOf, spansRequest } from '../support/otlp.ts';
import type { OtlpLog, OtlpRequest, Plain } from '../support/otlp.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';

/** What coding agents export, from their documentation and sources: see docs/opentelemetry.md. */
let service: TestService;
before(async () => {
  service = await startTestService({ flags: { 'log-level': 'silent' } });
});
after(() => service.stop());

let moment = Date.now() * 1000 - 60_000_000;

function logOf(
  attributes: Readonly<Record<string, Plain>>,
  more: Partial<Omit<OtlpLog, 'attributes'>> = {},
): OtlpLog {
  moment += 1_000_000;
  return { timeUnixNano: `${moment}000`, attributes: otlpAttributes(attributes), ...more };
}

async function post({ key }: KeyHolder, path: string, body: OtlpRequest): Promise<void> {
  const answer = await service.call(key, 'POST', path, body);
  assert.deepEqual([answer.status, answer.text], [200, '{}']);
}

async function tracesOf({ key }: KeyHolder): Promise<Answer['json'][]> {
  return (await service.call(key, 'GET', '/traces?limit=100')).json.traces.toReversed();
}

/** Posts everything in both orders and again, each to its own team, and returns the traces of both. */
async function inBothOrders(requests: readonly [string, OtlpRequest][]) {
  const results: Answer['json'][][] = [];
  for (const list of [requests, requests.toReversed()]) {
    const holder = await service.keyFor();
    for (const [path, body] of [...list, ...list]) await post(holder, path, body);
    results.push(await tracesOf(holder));
  }
  return results;
}

const common = {
  'session.id': '5d2f8b70-4a8e-4e0c-9a4f-2f3a2f6c0001',
  'user.id': 'a1b2c3d4e5f6',
  'user.email': 'dev@example.com',
  'organization.id': 'org-1',
  'terminal.type': 'vscode',
};

test('Claude Code: logs and spans of the same requests are counted once, with cached tokens as part of the input', async () => {
  const [first, second] = ['req_011CXaaaaaaaaaaaaaaaaaaa', 'req_011CXbbbbbbbbbbbbbbbbbbb'];
  const request = {
    ...common,
    'event.name': 'api_request',
    'event.sequence': 4,
    'prompt.id': '0b9d3d0e-5555-4444-8888-000000000001',
    model: 'claude-opus-5',
    input_tokens: '2',
    output_tokens: '1200',
    cache_read_tokens: '84562',
    cache_creation_tokens: '7096',
    cost_usd: '0.105',
    cost_usd_micros: 104_999,
    duration_ms: '18250',
    request_id: first,
    speed: 'normal',
    query_source: 'main',
  };
  const body = (name: string) => ({ body: { stringValue: `claude_code.${name}` } });
  const logs = logsRequest(
    [
      logOf({ ...common, 'event.name': 'user_prompt', prompt_length: '12' }, body('user_prompt')),
      logOf(request, body('api_request')),
      logOf(
        {
          ...common,
          'event.name': 'api_request',
          model: 'claude-haiku-5',
          input_tokens: '400',
          output_tokens: '20',
          cache_read_tokens: '0',
          cache_creation_tokens: '0',
          cost_usd: '0.0005',
          duration_ms: '700',
          request_id: second,
        },
        body('api_request'),
      ),
      logOf(
        {
          ...common,
          'event.name': 'api_error',
          model: 'claude-opus-5',
          error: '429 rate_limit_error',
          status_code: '429',
          duration_ms: '90',
          attempt: '3',
        },
        body('api_error'),
      ),
      logOf({ ...common, 'event.name': 'tool_result', tool_name: 'Bash' }, body('tool_result')),
    ],
    { 'service.name': 'claude-code' },
  );
  const llmRequest = (id: Record<string, string>, model: string) =>
    spanOf({
      name: 'claude_code.llm_request',
      attributes: {
        ...common,
        ...id,
        'span.type': 'llm_request',
        'gen_ai.system': 'anthropic',
        'gen_ai.request.model': model,
        model,
        input_tokens: 2,
        output_tokens: 1200,
        cache_read_tokens: 84_562,
        cache_creation_tokens: 7_096,
        ttft_ms: 900,
      },
    });
  const spans = spansRequest(
    [
      llmRequest({ request_id: first }, 'claude-opus-5'),
      llmRequest({}, 'claude-opus-5'),
      spanOf({ name: 'claude_code.tool', attributes: { ...common, tool_name: 'Bash' } }),
      spanOf({ name: 'claude_code.interaction', attributes: common }),
    ],
    { 'service.name': 'claude-code' },
  );
  const [logsFirst = [], spansFirst = []] = await inBothOrders([
    ['/v1/logs', logs],
    ['/v1/traces', spans],
  ]);
  assert.deepEqual([logsFirst.length, spansFirst.length], [3, 3]);
  const [opus, haiku, failed] = logsFirst;
  assert.deepEqual(
    [opus.prompt_tokens, opus.completion_tokens, opus.cache_read_tokens, opus.cache_write_tokens],
    [2 + 84_562 + 7_096, 1200, 84_562, 7_096],
  );
  assert.deepEqual(
    [opus.cost_usd, opus.latency_ms, opus.provider],
    [0.104999, 18_250, 'anthropic'],
  );
  assert.deepEqual(
    [opus.feature_name, opus.user_identifier, opus.session_id, opus.run_id],
    ['claude-code', common['user.id'], common['session.id'], request['prompt.id']],
  );
  assert.equal(haiku.model, 'claude-haiku-5');
  assert.deepEqual(
    [failed.status, failed.error_type, failed.error_message, failed.prompt_tokens],
    ['error', '429', '429 rate_limit_error', null],
  );
  const sums = (traces: Answer['json'][]): number =>
    traces.reduce((sum, { prompt_tokens: tokens }) => sum + (tokens ?? 0), 0);
  assert.equal(sums(logsFirst), sums(spansFirst));
});

test('Codex: a completed response is counted once; other events and spans with its tokens are skipped', async () => {
  const base = {
    'conversation.id': '01a1-conversation',
    'app.version': '0.154.0',
    'user.account_id': 'account-1',
    'user.email': 'dev@example.com',
    model: 'gpt-5.5',
    slug: 'gpt-5.5',
  };
  const sse = (more: Record<string, Plain>) =>
    logOf({ 'event.name': 'codex.sse_event', ...base, ...more });
  const logs = logsRequest(
    [
      logOf({ 'event.name': 'codex.conversation_starts', ...base }),
      logOf({ 'event.name': 'codex.api_request', ...base, duration_ms: '300' }),
      sse({ 'event.kind': 'response.created', duration_ms: '20' }),
      sse({ 'event.kind': 'response.completed', duration_ms: '1' }),
      sse({
        'event.kind': 'response.completed',
        input_token_count: '100',
        output_token_count: '30',
        cached_token_count: 40,
        reasoning_token_count: 12,
        tool_token_count: '130',
      }),
      sse({
        'event.kind': 'response.completed',
        input_token_count: '200',
        output_token_count: '5',
        tool_token_count: '205',
      }),
      logOf({ 'event.name': 'codex.turn_cost', ...base, cost_usd: '0.5' }),
    ],
    { 'service.name': 'codex_cli_rs' },
  );
  const usage = { 'gen_ai.usage.input_tokens': 300, 'gen_ai.usage.output_tokens': 35 };
  const spans = spansRequest([spanOf({ name: 'handle_responses', attributes: usage })]);
  for (const traces of await inBothOrders([
    ['/v1/logs', logs],
    ['/v1/traces', spans],
  ])) {
    assert.equal(traces.length, 2);
    const [trace] = traces;
    assert.deepEqual(
      [
        trace.prompt_tokens,
        trace.completion_tokens,
        trace.cache_read_tokens,
        trace.reasoning_tokens,
      ],
      [100, 30, 40, 12],
    );
    assert.deepEqual(
      [trace.model, trace.provider, trace.session_id, trace.user_identifier, trace.latency_ms],
      ['gpt-5.5', 'openai', '01a1-conversation', 'dev@example.com', null],
    );
  }
});

test('Gemini CLI: responses and errors are counted once; the events and spans that repeat them are skipped', async () => {
  const base = {
    'session.id': 'gemini-session',
    'user.email': 'dev@example.com',
    model: 'gemini-3-pro',
  };
  const resource = { 'service.name': 'gemini-cli' };
  const within = { traceId: hexId(16), spanId: hexId(8) };
  const logs = logsRequest(
    [
      logOf({ 'event.name': 'gemini_cli.api_request', ...base, request_text: 'Hi' }),
      logOf(
        {
          'event.name': 'gemini_cli.api_response',
          ...base,
          status_code: 200,
          duration_ms: 2400,
          input_token_count: 500,
          output_token_count: 40,
          cached_content_token_count: 300,
          thoughts_token_count: 25,
          tool_token_count: 7,
          total_token_count: 572,
          response_text: 'Hello.',
          prompt_id: 'p1',
        },
        within,
      ),
      logOf({
        'event.name': 'gen_ai.client.inference.operation.details',
        ...base,
        'gen_ai.request.model': 'gemini-3-pro',
        'gen_ai.operation.name': 'generate_content',
        'gen_ai.usage.input_tokens': 500,
        'gen_ai.usage.output_tokens': 40,
      }),
      logOf({
        'event.name': 'gemini_cli.api_error',
        ...base,
        error: 'Quota exceeded',
        error_type: 'quota',
        status_code: 429,
        duration_ms: 80,
      }),
    ],
    resource,
  );
  const attributes = {
    'gen_ai.operation.name': 'llm_call',
    'gen_ai.request.model': 'gemini-3-pro',
    'gen_ai.usage.input_tokens': 500,
  };
  const spans = spansRequest([spanOf({ ...within, name: 'llm_call', attributes })], resource);
  for (const traces of await inBothOrders([
    ['/v1/logs', logs],
    ['/v1/traces', spans],
  ])) {
    assert.equal(traces.length, 2);
    const [answered, failed] = traces;
    assert.deepEqual(
      [
        answered.prompt_tokens,
        answered.completion_tokens,
        answered.cache_read_tokens,
        answered.reasoning_tokens,
      ],
      [500, 65, 300, 25],
    );
    assert.deepEqual(
      [answered.output, answered.latency_ms, answered.feature_name, answered.provider],
      ['Hello.', 2400, 'gemini-cli', 'gcp.gemini'],
    );
    assert.deepEqual(
      [failed.status, failed.error_type, failed.error_message],
      ['error', 'quota', 'Quota exceeded'],
    );
  }
});
