import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callOf } from '../../src/http/protocols/call-draft.ts';
import { readJson } from '../../src/http/protocols/otlp-json.ts';
import { readProtobuf } from '../../src/http/protocols/otlp-protobuf.ts';
import { RejectedSignal } from '../../src/http/protocols/signal.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import {
  chatAttributes,
  otlpAttributes,
  spanOf,
  spansRequest,
  toProtobuf,
} from '../support/otlp.ts';
import type { OtlpSpan, Plain } from '../support/otlp.ts';

/** Attributes of conventions that no recorded emitter uses, or not in every form, and the fields that they become. */
type Attributes = Readonly<Record<string, Plain>>;
type Expected = Partial<TraceDraft>;

const nowUs = Date.now() * 1000;

/** The drafts from both encodings, which must be equal; null if the span is not a call. */
function draftOf(span: OtlpSpan, resource?: Attributes): TraceDraft | null {
  const request = spansRequest([span], resource);
  const [fromJson] = readJson(request, 'span');
  assert.ok(fromJson);
  const json = callOf(fromJson, nowUs);
  const [fromProtobuf] = readProtobuf(toProtobuf(request), 'span');
  assert.ok(fromProtobuf);
  assert.deepEqual(callOf(fromProtobuf, nowUs), json);
  return json?.draft ?? null;
}

function assertFields(
  attributes: Attributes,
  expected: Expected,
  span: Partial<OtlpSpan> = {},
): void {
  const draft = draftOf({ ...spanOf({ attributes }), ...span });
  assert.ok(draft, 'it is a call');
  const found = Object.fromEntries(
    Object.keys(expected).map((name) => [name, Reflect.get(draft, name)]),
  );
  assert.deepEqual(found, expected);
}

const cases: Readonly<Record<string, [Attributes, Expected]>> = {
  'official, with structured messages': [
    chatAttributes({
      'gen_ai.system_instructions': [{ type: 'text', content: 'Be brief.' }],
      'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'Hi' }] }],
      'gen_ai.output.messages': [
        { role: 'assistant', parts: [{ type: 'text', content: 'Hello' }] },
      ],
      'gen_ai.response.time_to_first_chunk': 0.25,
      'gen_ai.usage.cache_read.input_tokens': 7,
      'gen_ai.conversation.id': 'c1',
      'gen_ai.agent.name': 'planner',
    }),
    {
      input:
        '{"system":[{"type":"text","content":"Be brief."}],"messages":[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]}',
      output: 'Hello',
      ttft_ms: 250,
      cache_read_tokens: 7,
      prompt_tokens: 12,
      session_id: 'c1',
      feature_name: 'planner',
    },
  ],
  'messages that were cut off are stored as they are': [
    chatAttributes({
      'gen_ai.input.messages': '[{"role":"user","parts":[{"ty',
      'gen_ai.output.messages': '[{"role":"assi',
      'gen_ai.system_instructions': '[{"type":"text","content":"Be brief."}]',
    }),
    { input: '[{"role":"user","parts":[{"ty', output: '[{"role":"assi' },
  ],
  'older OpenLLMetry, with positions in the names': [
    {
      'llm.request.type': 'chat',
      'gen_ai.system': 'OpenAI',
      'gen_ai.request.model': 'gpt-4o',
      'gen_ai.prompt.0.role': 'system',
      'gen_ai.prompt.0.content': 'Be brief.',
      'gen_ai.prompt.1.role': 'user',
      'gen_ai.prompt.1.content': 'Hi',
      'gen_ai.prompt.10.role': 'user',
      'gen_ai.prompt.2.role': 'assistant',
      'gen_ai.prompt.2.tool_calls.0.name': 'weather',
      'gen_ai.prompt.2.tool_calls.0.arguments': '{}',
      'gen_ai.completion.0.role': 'assistant',
      'gen_ai.completion.0.content': 'Hello',
      'gen_ai.usage.prompt_tokens': '20',
      'gen_ai.usage.completion_tokens': '4',
      'llm.usage.total_tokens': '24',
      'traceloop.association.properties.user_id': 'u1',
      'traceloop.workflow.name': 'joke',
    },
    {
      provider: 'openai',
      input:
        '[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},' +
        '{"role":"assistant","tool_calls":[{"name":"weather","arguments":"{}"}]},{"role":"user"}]',
      output: 'Hello',
      prompt_tokens: 20,
      completion_tokens: 4,
      user_identifier: 'u1',
      feature_name: 'joke',
    },
  ],
  Langfuse: [
    {
      'langfuse.observation.type': 'generation',
      'langfuse.observation.model.name': 'gpt-4o',
      'langfuse.observation.input': '[{"role":"user","content":"Hi"}]',
      'langfuse.observation.output': 'Hello',
      'langfuse.observation.usage_details':
        '{"input":30,"output":6,"total":36,"input_cached_tokens":10}',
      'langfuse.observation.cost_details': '{"input":0.1,"output":0.2,"total":0.3}',
      'langfuse.session.id': 's1',
      'langfuse.user.id': 'u1',
      'langfuse.environment': 'staging',
      'langfuse.observation.level': 'ERROR',
      'langfuse.observation.status_message': 'too slow',
    },
    {
      model: 'gpt-4o',
      input: '[{"role":"user","content":"Hi"}]',
      output: 'Hello',
      prompt_tokens: 30,
      completion_tokens: 6,
      cache_read_tokens: 10,
      cost_usd: 0.3,
      session_id: 's1',
      user_identifier: 'u1',
      environment: 'staging',
      status: 'error',
      error_message: 'too slow',
    },
  ],
  LangSmith: [
    {
      'langsmith.span.kind': 'llm',
      'langsmith.metadata.ls_model_name': 'claude-sonnet-5',
      'langsmith.metadata.ls_provider': 'anthropic',
      'langsmith.metadata.thread_id': 't1',
      'gen_ai.prompt': '{"messages":[]}',
      'gen_ai.completion': 'Hello',
      'gen_ai.usage.input_tokens': 3,
    },
    {
      model: 'claude-sonnet-5',
      provider: 'anthropic',
      session_id: 't1',
      input: '{"messages":[]}',
      output: 'Hello',
      prompt_tokens: 3,
    },
  ],
  "LiteLLM's span": [
    chatAttributes({
      'gen_ai.cost.total_cost': '0.0021',
      'litellm.end_user.id': 'u1',
      'gen_ai.system': 'azure.ai.openai',
      'gen_ai.provider.name': '',
    }),
    { cost_usd: 0.0021, user_identifier: 'u1', provider: 'azure.ai.openai' },
  ],
  'cached tokens that are reported separately: more than the input': [
    chatAttributes({
      'gen_ai.usage.cache_read_input_tokens': 600,
      'gen_ai.usage.cache_creation_input_tokens': 50,
    }),
    { prompt_tokens: 662, cache_read_tokens: 600, cache_write_tokens: 50 },
  ],
  'cached and reasoning tokens that are reported separately: the total shows it': [
    chatAttributes({
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 500,
      'gen_ai.usage.total_tokens': 1000 + 500 + 600 + 40,
      'gen_ai.usage.cache_read_input_tokens': 600,
      'gen_ai.usage.reasoning_tokens': 40,
    }),
    { prompt_tokens: 1600, completion_tokens: 540 },
  ],
  'cached tokens that are part of the input: the total shows it': [
    chatAttributes({
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 500,
      'gen_ai.usage.total_tokens': 1500,
      'gen_ai.usage.cache_read_input_tokens': 600,
      'gen_ai.usage.reasoning_tokens': 40,
    }),
    { prompt_tokens: 1000, completion_tokens: 500 },
  ],
  'our own names take precedence': [
    chatAttributes({
      'tracetally.feature_name': 'checkout',
      'gen_ai.agent.name': 'planner',
      'tracetally.cost_usd': 1.5,
    }),
    { feature_name: 'checkout', cost_usd: 1.5 },
  ],
  'labels are cut, and control characters become spaces': [
    chatAttributes({ 'gen_ai.request.model': `a\n\u0000b${'😀'.repeat(300)}`, 'user.id': 7 }),
    { model: `a b${'😀'.repeat(252)}`, user_identifier: '7' },
  ],
};

for (const [what, [attributes, expected]] of Object.entries(cases)) {
  test(`attributes become fields: ${what}`, () => assertFields(attributes, expected));
}

const time = `${Date.now()}000000`;
const event = (name: string, attributes: Attributes) => ({
  timeUnixNano: time,
  name,
  attributes: otlpAttributes(attributes),
});

test('events of a span become messages: conventions 1.27 to 1.36', () => {
  const events = [
    event('gen_ai.system.message', { content: 'Be brief.' }),
    event('gen_ai.user.message', { content: 'Hi' }),
    event('gen_ai.content.completion.chunk', {}),
    event('gen_ai.choice', {
      index: 0,
      finish_reason: 'stop',
      message: '{"role":"assistant","content":"Hello"}',
    }),
  ];
  const input = '[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]';
  assertFields(chatAttributes(), { input, output: 'Hello' }, { events });
  const older = [
    event('gen_ai.content.prompt', { 'gen_ai.prompt': '[{"role":"user","content":"Hi"}]' }),
    event('gen_ai.content.completion', {
      'gen_ai.completion': '[{"role":"assistant","content":"Hello"}]',
    }),
  ];
  assertFields(
    chatAttributes(),
    { input: '[{"role":"user","content":"Hi"}]', output: 'Hello' },
    { events: older },
  );
});

test('a failed call has the message of its status or exception, and its type', () => {
  const events = [
    event('exception', { 'exception.type': 'RateLimitError', 'exception.message': 'slow down' }),
  ];
  const base = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' };
  assertFields(
    base,
    { status: 'error', error_type: 'RateLimitError', error_message: 'slow down' },
    { events, status: { code: 2 } },
  );
  assertFields(
    { ...base, 'error.type': 'timeout' },
    { status: 'error', error_type: 'timeout', error_message: 'too late' },
    { events, status: { code: 2, message: 'too late' } },
  );
  assertFields(
    chatAttributes(),
    { status: 'success', error_type: null, error_message: null },
    { events },
  );
});

test('labels of the resource are used if the span has none', () => {
  const resource = {
    'service.name': 'shop',
    'deployment.environment.name': 'production',
    'user.id': 'u0',
    'tracetally.session_id': 's0',
  };
  const draft = draftOf(spanOf({ attributes: chatAttributes({ 'user.id': 'u1' }) }), resource);
  assert.deepEqual(
    [draft?.feature_name, draft?.environment, draft?.user_identifier, draft?.session_id],
    ['shop', 'production', 'u1', 's0'],
  );
  const unnamed = draftOf(spanOf(), { 'service.name': 'unknown_service:node' });
  assert.equal(unnamed?.feature_name, null);
});

describe('not a call', () => {
  const others: Readonly<Record<string, Attributes>> = {
    'an outer span without an answer': {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'm',
    },
    'an agent without an operation': {
      'gen_ai.request.model': 'm',
      'gen_ai.system': 'openai',
      agent_name: 'a',
      'gen_ai.usage.input_tokens': 5,
    },
    'tokens without a model': { 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 5 },
    'a retriever of OpenInference': { ...chatAttributes(), 'openinference.span.kind': 'RETRIEVER' },
  };
  for (const [what, attributes] of Object.entries(others)) {
    test(what, () => assert.equal(draftOf(spanOf({ attributes })), null));
  }
});

test('a list that is too deep, and an attribute with too many values, reject the span', () => {
  let deep: Plain = 'x';
  for (let i = 0; i < 40; i++) deep = [deep];
  const span = spanOf({ attributes: chatAttributes({ 'gen_ai.input.messages': deep }) });
  const [signal] = readProtobuf(toProtobuf(spansRequest([span])), 'span');
  assert.ok(signal);
  assert.throws(
    () => callOf(signal, nowUs),
    (error) => error instanceof RejectedSignal && /deeper than 32/.test(error.message),
  );
});

test('names of attributes cannot reach a prototype', () => {
  const draft = draftOf(
    spanOf({
      attributes: chatAttributes({
        'gen_ai.prompt.0.__proto__.polluted': 'x',
        'gen_ai.prompt.0.constructor.prototype.polluted': 'x',
        'gen_ai.prompt.0.content': 'Hi',
        __proto__x: 'y',
      }),
    }),
  );
  assert.ok(draft?.input?.includes('Hi'));
  assert.equal(Reflect.get({}, 'polluted'), undefined);
});
