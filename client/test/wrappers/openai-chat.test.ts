import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { itemsOf, lastingTrace, only, pairOf } from '../support/side-by-side.ts';
import type { Pair } from '../support/side-by-side.ts';
import { until } from '../support/until.ts';

let fake: FakeProvider;
let pair: Pair<OpenAI>;

before(async () => {
  fake = await startFakeOpenAI();
  const make = () => new OpenAI({ apiKey: 'k', baseURL: `${fake.url}/v1`, maxRetries: 1 });
  pair = pairOf(fake, make, wrapOpenAI);
});
after(() => fake.stop());

const ask = (content: string) => ({
  model: 'gpt-4o',
  messages: [{ role: 'user' as const, content }],
});
const weatherTool = {
  type: 'function' as const,
  function: { name: 'weather', parameters: { type: 'object', properties: {} } },
};
const recordedHello = {
  model: 'gpt-4o',
  input: '[{"role":"user","content":"hi"}]',
  output: 'Hello there.',
  prompt_tokens: 1200,
  completion_tokens: 30,
  // 200 × $2.50 + 1,000 cached × $1.25 + 30 × $10, each a million.
  status: 'success',
  feature_name: 'tests',
  user_identifier: 'user-1',
  response_model: 'gpt-4o-2024-08-06',
  provider: 'openai',
  cache_read_tokens: 1000,
  reasoning_tokens: 12,
};

test('a plain chat completion is the same as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, (openai) => openai.chat.completions.create(ask('hi')));
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('a streamed chat completion yields the same chunks as unwrapped, and is recorded with its usage', async () => {
  const { traces, requests, outcome } = await pair.same(1, async (openai) =>
    itemsOf(await openai.chat.completions.create({ ...ask('hi'), stream: true })),
  );
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
  assert.equal(only(requests.bare).body['stream_options'], undefined);
  assert.deepEqual(only(requests.wrapped).body['stream_options'], { include_usage: true });
  const { value } = outcome as { value: object[] };
  assert.ok(value.length === 6 && value.every((chunk) => !('usage' in chunk)));
});

test('a caller that requests the usage receives the usage chunk', async () => {
  const { traces, outcome } = await pair.same(1, async (openai) => {
    const stream_options = { include_usage: true, include_obfuscation: false };
    return itemsOf(
      await openai.chat.completions.create({ ...ask('hi'), stream: true, stream_options }),
    );
  });
  assert.equal(only(traces).prompt_tokens, 1200);
  assert.equal((outcome as { value: object[] }).value.length, 7);
});

test('other stream options are kept when the wrapper requests the usage', async () => {
  const stream_options = { include_obfuscation: false };
  const { requests } = await pair.same(1, async (openai) =>
    itemsOf(await openai.chat.completions.create({ ...ask('hi'), stream: true, stream_options })),
  );
  assert.deepEqual(only(requests.wrapped).body['stream_options'], {
    include_obfuscation: false,
    include_usage: true,
  });
});

for (const stream_options of [null, { include_usage: false }]) {
  test(`stream_options ${JSON.stringify(stream_options)} reach the provider unchanged`, async () => {
    const { traces, requests } = await pair.same(1, async (openai) =>
      itemsOf(await openai.chat.completions.create({ ...ask('hi'), stream: true, stream_options })),
    );
    assert.deepEqual(only(requests.wrapped).body['stream_options'], stream_options);
    const { output, prompt_tokens } = only(traces);
    assert.deepEqual([output, prompt_tokens], ['Hello there.', undefined]);
  });
}

const calledWeather = {
  role: 'assistant',
  content: null,
  tool_calls: [
    {
      id: 'call_1',
      type: 'function',
      function: { name: 'weather', arguments: '{"city":"Paris"}' },
    },
  ],
};

test('tool calls are kept in the output, plain and streamed', async () => {
  const body = { ...ask('weather?'), tools: [weatherTool] };
  const plain = await pair.same(1, (openai) => openai.chat.completions.create(body));
  assert.deepEqual(JSON.parse(only(plain.traces).output ?? ''), calledWeather);
  const streamed = await pair.same(1, async (openai) =>
    itemsOf(await openai.chat.completions.create({ ...body, stream: true })),
  );
  assert.deepEqual(JSON.parse(only(streamed.traces).output ?? ''), calledWeather);
});

test('several choices are recorded as one call', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.create({ ...ask('hi'), n: 2 }),
  );
  assert.equal(only(traces).output, '["Hello there.","Hello there."]');
});

for (const status of [400, 401, 404, 429, 500]) {
  test(`status ${status} is thrown as by the SDK, and recorded once for all retries`, async () => {
    const { outcome, traces } = await pair.same(1, (openai) =>
      openai.chat.completions.create(ask(`fail ${status}`)),
    );
    const { error } = outcome as { error: { message: string; type: unknown } };
    assert.ok((error.type as typeof OpenAI.APIError).prototype instanceof OpenAI.APIError);
    const { status: recorded, error_message, model, output } = only(traces);
    assert.deepEqual(
      [recorded, error_message, model, output],
      ['error', error.message, 'gpt-4o', undefined],
    );
  });
}

test('a stream that fails at its start is recorded as an error', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.create({ ...ask('fail 400'), stream: true }),
  );
  assert.equal(only(traces).error_message, '400 The fake fails with 400.');
});

test('a stream that ends with an error of the provider is recorded as an error with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) =>
    itemsOf(await openai.chat.completions.create({ ...ask('break off'), stream: true })),
  );
  const { status, error_message, output } = only(traces);
  assert.deepEqual(
    [status, error_message, output],
    ['error', 'The fake broke off.', 'Hello there.'],
  );
});

test('a stream whose connection breaks is recorded as an error with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) =>
    itemsOf(await openai.chat.completions.create({ ...ask('cut'), stream: true })),
  );
  const { status, output } = only(traces);
  assert.deepEqual([status, output], ['error', 'Hello there.']);
});

test('leaving a stream early is recorded as a success with the text so far, and aborts the request', async () => {
  const cutBefore = fake.cutOff();
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create({ ...ask('slow'), stream: true });
    const seen = [];
    for await (const chunk of stream) {
      seen.push(chunk);
      if (seen.length === 3) break;
    }
    return { seen, isAborted: stream.controller.signal.aborted };
  });
  const { status, output, prompt_tokens } = only(traces);
  assert.deepEqual([status, output, prompt_tokens], ['success', 'tick tick ', undefined]);
  await until('both requests are cut off', () => fake.cutOff() >= cutBefore + 2);
  assert.equal(fake.cutOff(), cutBefore + 2);
});

test('aborting a stream after its first chunk is recorded as a success with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const abort = new AbortController();
    const { signal } = abort;
    const body = { ...ask('slow'), stream: true as const };
    const seen = [];
    for await (const chunk of await openai.chat.completions.create(body, { signal })) {
      seen.push(chunk);
      if (seen.length === 2) abort.abort();
    }
    return seen;
  });
  assert.deepEqual([only(traces).status, only(traces).output], ['success', 'tick ']);
});

test('aborting a stream before its first chunk is recorded as an error', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create({ ...ask('stall'), stream: true });
    setTimeout(() => stream.controller.abort(), 20);
    return itemsOf(stream);
  });
  const { status, error_message } = only(traces);
  assert.deepEqual([status, error_message], ['error', 'Request was aborted.']);
});

test('a timeout during a stream is recorded as an error with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const body = { ...ask('slow'), stream: true as const };
    const abort = new AbortController();
    const { signal } = abort;
    let ticks = 0;
    for await (const _chunk of await openai.chat.completions.create(body, { signal })) {
      // What AbortSignal.timeout does, but never before the first text has arrived.
      if (++ticks === 2) abort.abort(new DOMException('Aborted due to timeout', 'TimeoutError'));
    }
    return ticks;
  });
  const { status, error_message, output } = only(traces);
  assert.equal(status, 'error');
  assert.match(error_message ?? '', /timeout/);
  assert.match(output ?? '', /^tick /);
});

test('a call that is aborted before its reply is recorded as an error', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.create(ask('hi'), { signal: AbortSignal.abort() }),
  );
  assert.equal(only(traces).status, 'error');
  assert.match(only(traces).error_message ?? '', /^Request was aborted\./);
});

test('an unreachable provider is recorded as an error with its cause', async () => {
  const gone = await startFakeOpenAI();
  await gone.stop();
  const { traces } = await pair.same(1, (openai) =>
    openai
      .withOptions({ baseURL: `${gone.url}/v1`, maxRetries: 0 })
      .chat.completions.create(ask('hi')),
  );
  assert.equal(only(traces).status, 'error');
  assert.match(
    only(traces).error_message ?? '',
    /^Connection error\. \(cause: fetch failed, .*ECONNREFUSED/,
  );
});

test('the recorded input is what was sent, even if the caller changes the list later', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const { model, messages } = ask('hi');
    const promise = openai.chat.completions.create({ model, messages });
    messages.push({ role: 'user', content: 'and more' });
    // The SDK itself reads the list a moment later.
    return (await promise).id;
  });
  assert.equal(only(traces).input, '[{"role":"user","content":"hi"}]');
});

test('input and output that are too long for the server are cut, and the trace is recorded', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.create(ask('x'.repeat(2_000_000))),
  );
  const { input, output } = only(traces);
  assert.ok((input ?? '').length < 801_000);
  assert.match(input ?? '', /xx… \[truncated, 2000030 characters in total\]$/);
  assert.equal(output, 'Hello there.');
});
