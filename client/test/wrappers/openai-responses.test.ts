import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { itemsOf, lastingTrace, only, pairOf } from '../support/side-by-side.ts';
import type { Pair } from '../support/side-by-side.ts';

let fake: FakeProvider;
let pair: Pair<OpenAI>;

before(async () => {
  fake = await startFakeOpenAI();
  const make = () => new OpenAI({ apiKey: 'k', baseURL: `${fake.url}/v1`, maxRetries: 0 });
  pair = pairOf(fake, make, wrapOpenAI);
});
after(() => fake.stop());

const model = 'gpt-4o';
const recordedHello = {
  model: 'gpt-4o',
  input: 'hi',
  output: 'Hello there.',
  prompt_tokens: 1200,
  completion_tokens: 30,
  status: 'success',
  feature_name: 'tests',
  user_identifier: 'user-1',
  response_model: 'gpt-4o-2024-08-06',
  provider: 'openai',
  cache_read_tokens: 1000,
  cache_write_tokens: 0,
  reasoning_tokens: 12,
};

test('a plain response is the same as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.responses.create({ model, input: 'hi' }),
  );
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('a streamed response yields the same events as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, async (openai) =>
    itemsOf(await openai.responses.create({ model, input: 'hi', stream: true })),
  );
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('instructions are part of the input', async () => {
  const instructions = 'Be short.';
  const { traces } = await pair.same(1, (openai) =>
    openai.responses.create({ model, instructions, input: 'hi' }),
  );
  assert.deepEqual(JSON.parse(only(traces).input ?? ''), { instructions, input: 'hi' });
});

test('tool calls are kept in the output, plain and streamed', async () => {
  const expected = [
    {
      type: 'function_call',
      id: 'fc_1',
      call_id: 'call_1',
      name: 'weather',
      arguments: '{}',
      status: 'completed',
    },
  ];
  const plain = await pair.same(1, (openai) =>
    openai.responses.create({ model, input: 'weather?' }),
  );
  assert.deepEqual(JSON.parse(only(plain.traces).output ?? ''), expected);
  const streamed = await pair.same(1, async (openai) =>
    itemsOf(await openai.responses.create({ model, input: 'weather?', stream: true })),
  );
  assert.deepEqual(JSON.parse(only(streamed.traces).output ?? ''), expected);
});

for (const stream of [false, true]) {
  test(`a failed response is recorded as an error, ${stream ? 'streamed' : 'plain'}`, async () => {
    const { traces } = await pair.same(1, async (openai) => {
      const result = await openai.responses.create({ model, input: 'broken', stream });
      return Symbol.asyncIterator in result ? itemsOf(result) : result;
    });
    const { status, error_message } = only(traces);
    assert.deepEqual([status, error_message], ['error', 'The model broke.']);
  });
}

test('leaving a stream early is recorded with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const seen = [];
    const body = { model, input: 'slow', stream: true as const };
    for await (const event of await openai.responses.create(body)) {
      seen.push(event);
      if (seen.length === 7) break;
    }
    return seen;
  });
  const { status, output, model: answered } = only(traces);
  assert.deepEqual([status, output, answered], ['success', 'tick tick tick ', 'gpt-4o']);
});

test('text is recorded once if the stream is left between its message and the last event', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    for await (const { type } of await openai.responses.create({
      model,
      input: 'hi',
      stream: true,
    })) {
      if (type === 'response.output_item.done') break;
    }
  });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['Hello there.', undefined]);
});

test('the streaming helper works as unwrapped, and its request is recorded once', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = openai.responses.stream({ model, input: 'hi' });
    let text = '';
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta;
    });
    const events = await itemsOf(stream);
    const { output_text, usage } = await stream.finalResponse();
    return { text, events, output_text, usage };
  });
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('the parsing helper works as unwrapped, and its request is recorded once', async () => {
  const format = {
    type: 'json_schema' as const,
    name: 'sum',
    schema: { type: 'object', properties: { answer: { type: 'number' } } },
  };
  const { traces, outcome } = await pair.same(1, async (openai) =>
    openai.responses.parse({ model, input: 'json', text: { format } }),
  );
  const { value } = outcome as { value: { output_parsed: unknown } };
  assert.deepEqual(value.output_parsed, { answer: 4 });
  assert.equal(only(traces).output, '{"answer":4}');
});

test('errors are thrown as by the SDK', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.responses.create({ model, input: 'fail 400' }),
  );
  assert.equal(only(traces).status, 'error');
});

test('embeddings are the same as unwrapped, and are recorded without the vectors', async () => {
  const embedding = 'text-embedding-3-small';
  const { traces, outcome } = await pair.same(1, (openai) =>
    openai.embeddings.create({ model: embedding, input: ['one', 'two'] }),
  );
  const { value } = outcome as { value: { data: { embedding: number[] }[] } };
  assert.deepEqual([...(value.data[0]?.embedding ?? [])], [0.25, -0.5, 1]);
  assert.deepEqual(lastingTrace(only(traces)), {
    model: embedding,
    input: '["one","two"]',
    prompt_tokens: 8,
    status: 'success',
    feature_name: 'tests',
    user_identifier: 'user-1',
    provider: 'openai',
  });
});
