import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, Output, stepCountIs, streamText, tool, wrapLanguageModel } from 'ai';
import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { vercelMiddleware } from '../../src/vercel-ai.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import { itemsOf, lastingTrace, only, pairOf } from '../support/side-by-side.ts';
import type { Pair } from '../support/side-by-side.ts';

type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;

let fake: FakeProvider;
let pair: Pair<Model>;

before(async () => {
  fake = await startFakeOpenAI();
  const openai = createOpenAI({ apiKey: 'k', baseURL: `${fake.url}/v1` });
  pair = pairOf(
    fake,
    () => openai.chat('gpt-4o'),
    (recorder, model, labels) =>
      wrapLanguageModel({ model, middleware: vercelMiddleware(recorder, labels) }),
  );
});
after(() => fake.stop());

const weather = tool({
  description: 'The weather in a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => `sunny in ${city}`,
});
const recordedHello = {
  model: 'gpt-4o',
  input: '[{"role":"user","content":[{"type":"text","text":"hi"}]}]',
  output: 'Hello there.',
  prompt_tokens: 1200,
  completion_tokens: 30,
  status: 'success',
  feature_name: 'tests',
  user_identifier: 'user-1',
  response_model: 'gpt-4o-2024-08-06',
  provider: 'openai',
  cache_read_tokens: 1000,
  reasoning_tokens: 12,
};

test('generateText returns the same as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, async (model) => {
    const { text, usage, finishReason, content } = await generateText({ model, prompt: 'hi' });
    return { text, usage, finishReason, content };
  });
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('streamText returns the same as unwrapped, and is recorded', async () => {
  const { traces } = await pair.same(1, async (model) => {
    const { textStream, usage, finishReason } = streamText({ model, prompt: 'hi' });
    return { texts: await itemsOf(textStream), usage: await usage, reason: await finishReason };
  });
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('each step of a call with tools is recorded once, with its tool calls', async () => {
  const settings = { prompt: 'weather?', tools: { weather }, stopWhen: stepCountIs(3) };
  const generated = await pair.same(2, async (model) => {
    const { text, steps } = await generateText({ model, ...settings });
    return { text, count: steps.length };
  });
  const streamed = await pair.same(2, async (model) => {
    const { textStream, steps } = streamText({ model, ...settings });
    return { texts: await itemsOf(textStream), count: (await steps).length };
  });
  for (const { traces } of [generated, streamed]) {
    const [first, second] = traces;
    const { type, toolName, input } = only(
      JSON.parse(first?.output ?? '') as { type: string; toolName: string; input: string }[],
    );
    assert.deepEqual([type, toolName, input], ['tool-call', 'weather', '{"city":"Paris"}']);
    assert.match(second?.input ?? '', /sunny in Paris/);
    assert.equal(second?.output, 'Hello there.');
  }
});

test('structured output is the same as unwrapped', async () => {
  const output = Output.object({ schema: z.object({ answer: z.number() }) });
  const { traces } = await pair.same(1, async (model) => {
    const result = await generateText({ model, prompt: 'json', output });
    return result.output;
  });
  assert.equal(only(traces).output, '{"answer":4}');
});

test('an error is thrown as by the unwrapped model, and recorded', async () => {
  const { traces } = await pair.same(1, (model) =>
    generateText({ model, prompt: 'fail 400', maxRetries: 0 }),
  );
  const { status, error_message, model } = only(traces);
  assert.deepEqual([status, error_message, model], ['error', 'The fake fails with 400.', 'gpt-4o']);
});

test('each attempt of the SDK is recorded as its own call', async () => {
  const { traces } = await pair.same(2, (model) =>
    generateText({ model, prompt: 'fail 429', maxRetries: 1 }).catch((error: Error) => error.name),
  );
  assert.deepEqual(
    traces.map(({ status }) => status),
    ['error', 'error'],
  );
});

for (const [scene, message] of [
  ['fail 400', /fails with 400/],
  ['break off', /broke off/],
  ['cut', /terminated/],
] as const) {
  test(`streamText with "${scene}" fails as unwrapped, and is recorded as an error`, async () => {
    const { traces } = await pair.same(1, async (model) => {
      const errors: string[] = [];
      const { textStream } = streamText({
        model,
        prompt: scene,
        maxRetries: 0,
        onError: ({ error }) => void errors.push(String(error)),
      });
      const texts = await itemsOf(textStream).catch(String);
      return { texts, errors };
    });
    const { status, error_message, output } = only(traces);
    assert.equal(status, 'error');
    assert.match(error_message ?? '', message);
    assert.equal(output, scene === 'fail 400' ? undefined : 'Hello there.');
  });
}

test('an aborted stream is recorded once, as a success with the text so far', async () => {
  const { traces } = await pair.same(1, async (model) => {
    const abort = new AbortController();
    const { textStream } = streamText({ model, prompt: 'slow', abortSignal: abort.signal });
    let count = 0;
    for await (const _ of textStream) if (++count === 3) abort.abort();
    return count >= 3;
  });
  assert.equal(only(traces).status, 'success');
  assert.match(only(traces).output ?? '', /^(tick ){3,}$/);
});

test('a stream that times out is recorded as an error with the text so far', async () => {
  const { traces } = await pair.same(1, async (model) => {
    const abort = new AbortController();
    const options = { model, prompt: 'slow', abortSignal: abort.signal, onError() {} };
    let count = 0;
    for await (const _ of streamText(options).textStream) {
      // What AbortSignal.timeout does, but never before the first text has arrived.
      if (++count === 2) abort.abort(new DOMException('Aborted due to timeout', 'TimeoutError'));
    }
  });
  assert.equal(only(traces).status, 'error');
  assert.match(only(traces).error_message ?? '', /timeout/);
});

test('an aborted generateText is recorded as an error', async () => {
  const { traces } = await pair.same(1, (model) =>
    generateText({ model, prompt: 'hi', abortSignal: AbortSignal.abort() }),
  );
  assert.equal(only(traces).status, 'error');
});

/** The middleware by itself, around a stream of our own. */
async function observedStream(parts: readonly unknown[], signal?: AbortSignal) {
  const recorder = memoryRecorder();
  let pulls = 0;
  let cancelled: unknown;
  const source = new ReadableStream<unknown>(
    {
      pull(controller) {
        const part = parts[pulls++];
        if (part === undefined) controller.close();
        else controller.enqueue(part);
      },
      cancel(reason) {
        cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  const { stream } = await vercelMiddleware(recorder).wrapStream({
    doStream: () => Promise.resolve({ stream: source }),
    params: { prompt: 'hi', abortSignal: signal },
    model: { modelId: 'm', provider: 'p' },
  });
  return { recorder, stream, pulls: () => pulls, cancelled: () => cancelled };
}

const text = (delta: string) => ({ type: 'text-delta', id: '0', delta });

test('nothing is read ahead of the reader, and cancelling reaches the provider', async () => {
  const { recorder, stream, pulls, cancelled } = await observedStream([
    text('a'),
    text('b'),
    text('c'),
  ]);
  assert.equal(pulls(), 0);
  const reader = stream.getReader();
  await reader.read();
  assert.equal(pulls(), 1);
  await reader.read();
  await reader.cancel('enough');
  assert.equal(cancelled(), 'enough');
  const { status, output } = only(await recorder.settled(1));
  assert.deepEqual([status, output], ['success', 'ab']);
});

test('the token counts of AI SDK 5 are read', async () => {
  const usage = { inputTokens: 7, outputTokens: 3, cachedInputTokens: 2 };
  const { recorder, stream } = await observedStream([text('a'), { type: 'finish', usage }]);
  await itemsOf(stream);
  const { prompt_tokens, completion_tokens } = only(await recorder.settled(1));
  assert.deepEqual([prompt_tokens, completion_tokens], [7, 3]);
});

test('AI SDK 5 counts the cached tokens of Anthropic apart from the input tokens; they are added', async () => {
  const usage = { inputTokens: 7, outputTokens: 3, cachedInputTokens: 100 };
  const providerMetadata = { anthropic: { cacheCreationInputTokens: 20 } };
  const finish = { type: 'finish', usage, providerMetadata };
  const { recorder, stream } = await observedStream([text('a'), finish]);
  await itemsOf(stream);
  const trace = only(await recorder.settled(1));
  assert.equal(trace.prompt_tokens, 127);
  assert.deepEqual([trace.cache_read_tokens, trace.cache_write_tokens], [100, 20]);
});

test('invalid stream parts reach the caller unchanged', async () => {
  const { recorder, stream } = await observedStream(['odd', { type: 'text-delta' }, text('a')]);
  assert.equal((await itemsOf(stream)).length, 3);
  assert.equal(only(await recorder.settled(1)).status, 'success');
});
