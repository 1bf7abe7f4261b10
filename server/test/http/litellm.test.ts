import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { chatAttributes, spanOf, spansRequest } from '../support/otlp.ts';
import * as http from './helpers.ts';

let service: TestService;
before(async () => {
  service = await startTestService({ flags: { 'log-level': 'silent' } });
});
after(() => service.stop());

const path = '/ingest/litellm';
const start = Math.floor(Date.now() / 1000) - 60;

/** The fields of LiteLLM's standard logging payload that its proxy fills in, shortened. */
function payload(id: string, more: object = {}): Record<string, unknown> {
  return {
    id,
    trace_id: 'trace-77',
    call_type: 'acompletion',
    stream: true,
    status: 'success',
    custom_llm_provider: 'anthropic',
    response_cost: 0.00345,
    total_tokens: 1120,
    prompt_tokens: 1000,
    completion_tokens: 120,
    startTime: start,
    endTime: start + 2.5,
    completionStartTime: start + 0.4,
    response_time: 2.5,
    model: 'claude-sonnet-5-20260801',
    model_group: 'sonnet',
    end_user: 'user-9',
    request_tags: ['prod'],
    messages: [{ role: 'user', content: 'How are you?' }],
    response: {
      id,
      model: 'claude-sonnet-5-20260801',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: 'Fine.', tool_calls: null },
        },
      ],
    },
    metadata: {
      user_api_key_alias: 'shop-backend',
      requester_metadata: { session_id: 'session-5' },
      usage_object: {
        prompt_tokens_details: { cached_tokens: 600 },
        cache_creation_input_tokens: 50,
        completion_tokens_details: { reasoning_tokens: 20 },
      },
    },
    error_str: null,
    error_information: null,
    ...more,
  };
}

async function tracesOf({ key }: KeyHolder): Promise<Answer['json'][]> {
  return (await service.call(key, 'GET', '/traces?limit=100')).json.traces.toReversed();
}

const none = { stored: 0, duplicate: 0, skipped: 0, rejected: 0, reasons: [] };

test('a list, one payload per line and a single one store their calls, each once', async () => {
  const holder = await service.keyFor();
  const [a, b, c, d] = ['aa', 'bb', 'cc', 'dd'].map((id) => payload(`chatcmpl-${id}-000000000001`));
  const list = await service.call(holder.key, 'POST', path, [a, b]);
  assert.deepEqual([list.status, list.json], [200, { ...none, stored: 2 }]);
  const lines = `${JSON.stringify(b)}\n${JSON.stringify(c)}\n`;
  for (const type of ['application/json', 'application/x-ndjson']) {
    const answer = await service.call(holder.key, 'POST', path, lines, { 'content-type': type });
    assert.equal(answer.status, 200, answer.text);
  }
  const single = await service.call(null, 'POST', path, d, { 'x-api-key': holder.key });
  assert.deepEqual([single.status, single.json], [200, { ...none, stored: 1 }]);
  const again = await service.call(holder.key, 'POST', path, [a, b, c, d]);
  assert.deepEqual(again.json, { ...none, duplicate: 4 });
  const traces = await tracesOf(holder);
  assert.equal(traces.length, 4);
  const { id: _id, team_id: _team, created_at: _at, ...rest } = traces[0];
  assert.deepEqual(rest, {
    model: 'sonnet',
    response_model: 'claude-sonnet-5-20260801',
    provider: 'anthropic',
    input: '[{"role":"user","content":"How are you?"}]',
    output: 'Fine.',
    prompt_tokens: 1000,
    completion_tokens: 120,
    cache_read_tokens: 600,
    cache_write_tokens: 50,
    reasoning_tokens: 20,
    latency_ms: 2500,
    ttft_ms: 400,
    cost_usd: 0.00345,
    cost_source: 'client',
    status: 'success',
    error_message: null,
    feature_name: 'shop-backend',
    user_identifier: 'user-9',
    session_id: 'session-5',
    run_id: 'trace-77',
    started_at: `${new Date(start * 1000).toISOString().slice(0, 19)}.000000Z`,
  });
});

test('a failed call is stored with its error, and a tool call with its arguments', async () => {
  const holder = await service.keyFor();
  const toolCall = { id: 'call_1', function: { name: 'weather', arguments: '{"city":"Paris"}' } };
  const answer = await service.call(holder.key, 'POST', path, [
    payload('0b9d3d0e-5555-4444-8888-000000000001', {
      status: 'failure',
      response: null,
      response_cost: 0,
      error_str: 'litellm.RateLimitError: too many requests',
      error_information: { error_class: 'RateLimitError', error_code: '429' },
    }),
    payload('chatcmpl-tool-000000000001', {
      response: {
        choices: [{ message: { role: 'assistant', content: null, tool_calls: [toolCall] } }],
      },
    }),
  ]);
  assert.deepEqual(answer.json, { ...none, stored: 2 });
  const [failed, tool] = await tracesOf(holder);
  assert.deepEqual(
    [failed.status, failed.error_type, failed.error_message, failed.output],
    ['error', 'RateLimitError', 'litellm.RateLimitError: too many requests', null],
  );
  assert.deepEqual(JSON.parse(tool.output), [{ role: 'assistant', tool_calls: [toolCall] }]);
});

test('a call that the app reports too is stored once', async () => {
  const holder = await service.keyFor();
  const id = 'chatcmpl-both-000000000001';
  await service.call(holder.key, 'POST', path, payload(id));
  const span = spanOf({ attributes: chatAttributes({ 'gen_ai.response.id': id }) });
  assert.equal(
    (await service.call(holder.key, 'POST', '/v1/traces', spansRequest([span]))).status,
    200,
  );
  assert.equal((await tracesOf(holder)).length, 1);
});

test("attempts that share the proxy's id of a request are different calls, and so are answers from a cache", async () => {
  const holder = await service.keyFor();
  const proxyId = '0b9d3d0e-5555-4444-8888-000000000001';
  const failed = (at: number) =>
    payload(proxyId, {
      status: 'failure',
      response: null,
      startTime: start + at,
      endTime: start + at + 1,
    });
  const embedding = (at: number) =>
    payload(proxyId, { call_type: 'aembedding', response: null, startTime: start + at });
  const cached = (time: string) => payload(`chatcmpl-cached-000001_cache_hit${time}`);
  const calls = [failed(1), failed(3), embedding(5), embedding(6), cached('17.1'), cached('17.2')];
  const answer = await service.call(holder.key, 'POST', path, calls);
  assert.deepEqual(answer.json, { ...none, stored: 6 });
  const again = await service.call(holder.key, 'POST', path, calls);
  assert.deepEqual(again.json, { ...none, duplicate: 6 });
});

test('payloads that are not calls are skipped, invalid ones are rejected with a reason', async () => {
  const holder = await service.keyFor();
  const answer = await service.call(holder.key, 'POST', path, [
    payload('mcp-000000000000000001', { call_type: 'call_mcp_tool' }),
    payload('file-00000000000000001', { model: '', model_group: null }),
    payload('chatcmpl-bad-000000000', { prompt_tokens: -5 }),
    'text',
    null,
    payload('chatcmpl-good-00000000'),
  ]);
  const reasons = [
    'standard_logging.prompt_tokens must be an integer from 0 to 2147483647',
    'it is not a JSON object',
  ];
  assert.deepEqual(answer.json, { stored: 1, duplicate: 0, skipped: 2, rejected: 3, reasons });
  assert.equal((await tracesOf(holder)).length, 1);
});

test('a body that is not JSON gets a problem that names the line', async () => {
  const { key } = await service.keyFor();
  const post = (body: string): Promise<Answer> => service.call(key, 'POST', path, body);
  http.assertProblem(await post('{'), 'malformed_json');
  http.assertProblem(await post(''), 'malformed_json');
  const second = await post(`${JSON.stringify(payload('x'))}\n{oops\n`);
  http.assertProblem(second, 'malformed_json');
  assert.match(second.json.detail, /Line 2/);
});
