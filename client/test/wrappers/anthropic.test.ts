import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';
import { wrapAnthropic } from '../../src/wrap-anthropic.ts';
import { startFakeAnthropic } from '../support/fake-anthropic.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import { itemsOf, lastingTrace, only, pairOf } from '../support/side-by-side.ts';
import type { Pair } from '../support/side-by-side.ts';

let fake: FakeProvider;
let pair: Pair<Anthropic>;

before(async () => {
  fake = await startFakeAnthropic();
  const make = () => new Anthropic({ apiKey: 'k', baseURL: fake.url, maxRetries: 1 });
  pair = pairOf(fake, make, wrapAnthropic);
});
after(() => fake.stop());

const ask = (content: string) => ({
  model: 'claude-opus-5-5',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content }],
});
const askStream = (content: string) => ({ ...ask(content), stream: true as const });

const recordedHello = {
  model: 'claude-opus-5-5',
  input: '[{"role":"user","content":"hi"}]',
  output: 'Hello there.',
  prompt_tokens: 1500,
  completion_tokens: 30,
  // 200 × $4 + 1,000 read × $0.20 + 200 written × $5 + 100 written for an hour × $8 + 30 × $20, each a million.
  status: 'success',
  feature_name: 'tests',
  user_identifier: 'user-1',
  provider: 'anthropic',
  cache_read_tokens: 1000,
  cache_write_tokens: 300,
  reasoning_tokens: 12,
};

test('a plain message is the same as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, (anthropic) => anthropic.messages.create(ask('hi')));
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('a streamed message yields the same events as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, async (anthropic) =>
    itemsOf(await anthropic.messages.create(askStream('hi'))),
  );
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('the streaming helper emits the same events, and its request is recorded once', async () => {
  const { traces } = await pair.same(1, async (anthropic) => {
    const texts: string[] = [];
    const stream = anthropic.messages.stream(ask('hi')).on('text', (text) => void texts.push(text));
    const message = await stream.finalMessage();
    const { response } = await stream.withResponse();
    return { texts, message, id: stream.request_id, status: response.status };
  });
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('the streaming helper can be iterated as unwrapped', async () => {
  const { traces } = await pair.same(1, (anthropic) =>
    itemsOf(anthropic.messages.stream(ask('hi'))),
  );
  assert.equal(only(traces).output, 'Hello there.');
});

test('the parsing helper works as unwrapped, and its request is recorded once', async () => {
  const output_config = { format: zodOutputFormat(z.object({ answer: z.number() })) };
  const { traces, outcome } = await pair.same(1, (anthropic) =>
    anthropic.messages.parse({ ...ask('json'), output_config }),
  );
  const { value } = outcome as { value: { parsed_output: unknown } };
  assert.deepEqual(value.parsed_output, { answer: 4 });
  assert.equal(only(traces).output, '{"answer":4}');
});

test('a system prompt is part of the input', async () => {
  const { traces } = await pair.same(1, (anthropic) =>
    anthropic.messages.create({ ...ask('hi'), system: 'Be short.' }),
  );
  assert.deepEqual(JSON.parse(only(traces).input ?? ''), {
    system: 'Be short.',
    messages: [{ role: 'user', content: 'hi' }],
  });
});

test('tool uses are kept in the output, plain and streamed', async () => {
  const tool = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Paris' } };
  const plain = await pair.same(1, (anthropic) => anthropic.messages.create(ask('weather?')));
  const text = { type: 'text', text: 'I will look.', citations: null };
  assert.deepEqual(JSON.parse(only(plain.traces).output ?? ''), [text, tool]);
  const streamed = await pair.same(1, async (anthropic) =>
    itemsOf(await anthropic.messages.create(askStream('weather?'))),
  );
  assert.deepEqual(JSON.parse(only(streamed.traces).output ?? ''), [
    { type: 'text', text: 'I will look.' },
    tool,
  ]);
});

for (const status of [400, 429, 500, 529]) {
  test(`status ${status} is thrown as by the SDK, and recorded once for all retries`, async () => {
    const { outcome, traces } = await pair.same(1, (anthropic) =>
      anthropic.messages.create(ask(`fail ${status}`)),
    );
    const { error } = outcome as { error: { message: string; type: unknown } };
    assert.ok((error.type as typeof Anthropic.APIError).prototype instanceof Anthropic.APIError);
    assert.deepEqual([only(traces).status, only(traces).error_message], ['error', error.message]);
  });
}

test('the streaming helper fails as unwrapped, and the failure is recorded once', async () => {
  const { traces } = await pair.same(1, (anthropic) =>
    anthropic.messages.stream(ask('fail 400')).finalMessage(),
  );
  assert.equal(only(traces).status, 'error');
});

for (const scene of ['break off', 'cut']) {
  test(`a stream with "${scene}" in the middle is recorded as an error with the text so far`, async () => {
    const { traces } = await pair.same(1, async (anthropic) =>
      itemsOf(await anthropic.messages.create(askStream(scene))),
    );
    const { status, output, prompt_tokens } = only(traces);
    assert.deepEqual([status, output, prompt_tokens], ['error', 'Hello there.', 1500]);
  });
}

test('leaving a stream early is recorded as a success with the text and tokens so far', async () => {
  const { traces } = await pair.same(1, async (anthropic) => {
    const seen = [];
    for await (const event of await anthropic.messages.create(askStream('slow'))) {
      seen.push(event);
      if (seen.length === 4) break;
    }
    return seen;
  });
  const { status, output, prompt_tokens } = only(traces);
  assert.deepEqual([status, output, prompt_tokens], ['success', 'tick tick ', 1500]);
});

test('aborting the streaming helper rejects as unwrapped, and is recorded as a success with the text so far', async () => {
  const { traces } = await pair.same(1, async (anthropic) => {
    const stream = anthropic.messages.stream(ask('slow'));
    stream.once('text', () => stream.abort());
    await stream.finalMessage();
  });
  assert.deepEqual([only(traces).status, only(traces).output], ['success', 'tick ']);
});

test('a call that is aborted before its reply is recorded as an error', async () => {
  const { traces } = await pair.same(1, (anthropic) =>
    anthropic.messages.create(ask('hi'), { signal: AbortSignal.abort() }),
  );
  assert.equal(only(traces).status, 'error');
  assert.match(only(traces).error_message ?? '', /^Request was aborted\./);
});

test('withResponse, asResponse, tee and toReadableStream work as unwrapped', async () => {
  const withResponse = await pair.same(1, async (anthropic) => {
    const { data, response, request_id } = await anthropic.messages
      .create(ask('hi'))
      .withResponse();
    return { data, ok: response.ok, request_id };
  });
  const raw = await pair.same(1, async (anthropic) =>
    (await anthropic.messages.create(ask('hi')).asResponse()).json(),
  );
  const teed = await pair.same(1, async (anthropic) => {
    const [left, right] = (await anthropic.messages.create(askStream('hi'))).tee();
    return [await itemsOf(left), await itemsOf(right)];
  });
  const readable = await pair.same(1, async (anthropic) => {
    const stream = await anthropic.messages.create(askStream('hi'));
    return new Response(stream.toReadableStream() as ReadableStream<Uint8Array>).text();
  });
  for (const { traces } of [withResponse, raw, teed, readable]) {
    assert.deepEqual(lastingTrace(only(traces)), recordedHello);
  }
});

test('a call that is never awaited is recorded with its answer', async () => {
  const recorder = memoryRecorder();
  void wrapAnthropic(recorder, pair.bare).messages.create(ask('hi'));
  assert.equal(only(await recorder.settled(1)).output, 'Hello there.');
});

test('beta messages are recorded, plain, streamed and through the helper', async () => {
  await pair.same(1, (anthropic) => anthropic.beta.messages.create(ask('hi')));
  await pair.same(1, async (anthropic) =>
    itemsOf(await anthropic.beta.messages.create(askStream('hi'))),
  );
  const { traces } = await pair.same(1, (anthropic) =>
    anthropic.beta.messages.stream(ask('hi')).finalMessage(),
  );
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

const weather = betaZodTool({
  name: 'weather',
  description: 'The weather in a city.',
  inputSchema: z.object({ city: z.string() }),
  run: ({ city }) => `sunny in ${city}`,
});

for (const thread of [undefined, false] as const) {
  const kind = thread === undefined ? 'a thread' : 'no thread';
  test(`the tool runner over ${kind} runs the tools, and each of its requests is recorded once`, async () => {
    const body = { ...ask('weather?'), tools: [weather], ...(thread === false ? { thread } : {}) };
    const plain = await pair.same(2, async (anthropic) => anthropic.beta.messages.toolRunner(body));
    const streamed = await pair.same(2, async (anthropic) => {
      const messages = [];
      for await (const stream of anthropic.beta.messages.toolRunner({ ...body, stream: true })) {
        messages.push(await stream.finalMessage());
      }
      return messages;
    });
    for (const { traces } of [plain, streamed]) {
      assert.match(traces[0]?.output ?? '', /"tool_use".*"city":"Paris"/);
      assert.match(traces[1]?.input ?? '', /sunny in Paris/);
      const { output, prompt_tokens, completion_tokens } = traces[1] ?? {};
      assert.deepEqual([output, prompt_tokens, completion_tokens], ['Hello there.', 1500, 30]);
    }
  });
}

for (const [scene, status] of [
  ['cut', 'error'],
  ['break off', 'error'],
  ['slow', 'success'],
] as const) {
  test(`a stream of a thread with "${scene}" ends as unwrapped, and is recorded as ${status}`, async () => {
    const { traces } = await pair.same(1, async (anthropic) => {
      const { messages: _, ...params } = ask('');
      const stream = anthropic.beta.messages
        .thread(params)
        .stream({ role: 'user', content: scene });
      stream.once('text', () => void (scene === 'slow' && stream.abort()));
      await stream.finalMessage();
    });
    assert.equal(only(traces).status, status);
    assert.match(only(traces).output ?? '', scene === 'slow' ? /^tick / : /^Hello there\.$/);
  });
}
