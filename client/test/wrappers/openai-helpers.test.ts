import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { itemsOf, only, pairOf } from '../support/side-by-side.ts';
import type { Pair } from '../support/side-by-side.ts';

let fake: FakeProvider;
let pair: Pair<OpenAI>;

before(async () => {
  fake = await startFakeOpenAI();
  const make = () => new OpenAI({ apiKey: 'k', baseURL: `${fake.url}/v1`, maxRetries: 0 });
  pair = pairOf(fake, make, wrapOpenAI);
});
after(() => fake.stop());

const ask = (content: string) => ({
  model: 'gpt-4o',
  messages: [{ role: 'user' as const, content }],
});
const response_format = zodResponseFormat(z.object({ answer: z.number() }), 'sum');

function toolBody() {
  return {
    ...ask('weather?'),
    tools: [
      {
        type: 'function' as const,
        function: {
          name: 'weather',
          description: 'The weather in a city.',
          parse: (text: string) => JSON.parse(text) as { city: string },
          function: ({ city }: { city: string }) => `sunny in ${city}`,
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      },
    ],
  };
}

test('chat.completions.parse returns the parsed answer, and its request is recorded once', async () => {
  const { traces, outcome } = await pair.same(1, (openai) =>
    openai.chat.completions.parse({ ...ask('json'), response_format }),
  );
  const { value } = outcome as { value: { choices: { message: { parsed: unknown } }[] } };
  assert.deepEqual(value.choices[0]?.message.parsed, { answer: 4 });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['{"answer":4}', 1200]);
});

test('a parse error of a complete answer is thrown to the caller, and the call is recorded as a success', async () => {
  const { traces, outcome } = await pair.same(1, (openai) =>
    openai.chat.completions.parse({ ...ask('hi'), response_format }),
  );
  assert.ok('error' in outcome);
  assert.deepEqual([only(traces).status, only(traces).output], ['success', 'Hello there.']);
});

test('a parse whose request fails is recorded as an error', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.parse({ ...ask('fail 500'), response_format }),
  );
  assert.equal(only(traces).status, 'error');
});

test('chat.completions.stream emits the same events, and its request is recorded once', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = openai.chat.completions.stream(ask('hi'));
    const deltas: string[] = [];
    stream.on('content', (delta) => void deltas.push(delta));
    const chunks = await itemsOf(stream);
    const completion = await stream.finalChatCompletion();
    return { deltas, chunks, completion, usage: await stream.totalUsage() };
  });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['Hello there.', 1200]);
});

test('chat.completions.stream with a format parses as unwrapped', async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.stream({ ...ask('json'), response_format }).finalChatCompletion(),
  );
  assert.equal(only(traces).output, '{"answer":4}');
});

test('leaving the streaming helper early is recorded as a success with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = openai.chat.completions.stream(ask('slow'));
    stream.on('error', () => {});
    let count = 0;
    for await (const _ of stream) if (++count === 3) break;
    return stream.controller.signal.aborted;
  });
  assert.equal(only(traces).status, 'success');
  assert.match(only(traces).output ?? '', /^(tick )+$/);
});

test('runTools runs the tools, and each of its requests is recorded once', async () => {
  const { traces } = await pair.same(2, async (openai) => {
    const runner = openai.chat.completions.runTools(toolBody());
    return { content: await runner.finalContent(), messages: runner.messages };
  });
  assert.match(traces[0]?.output ?? '', /"tool_calls"/);
  assert.match(traces[1]?.input ?? '', /sunny in Paris/);
  assert.equal(traces[1]?.output, 'Hello there.');
});

test('runTools with a stream runs the tools, and each of its requests is recorded once', async () => {
  const { traces } = await pair.same(2, async (openai) => {
    const runner = openai.chat.completions.runTools({ ...toolBody(), stream: true });
    const chunks = await itemsOf(runner);
    return { chunks, content: await runner.finalContent() };
  });
  assert.deepEqual(
    traces.map(({ prompt_tokens }) => prompt_tokens),
    [1200, 1200],
  );
});
