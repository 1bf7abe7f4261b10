import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { generateObject, generateText, streamText, tool, wrapLanguageModel } from 'ai';
import type { LanguageModelV1 } from 'ai';
import { z } from 'zod';
import { vercelMiddleware } from '../../client/src/vercel-ai.ts';
import { startFakeOpenAI } from '../../client/test/support/fake-openai.ts';
import type { FakeProvider } from '../../client/test/support/fake-provider.ts';
import { memoryRecorder } from '../../client/test/support/memory-recorder.ts';
import { itemsOf, lastingTrace, only, pairOf } from '../../client/test/support/side-by-side.ts';
import type { Pair } from '../../client/test/support/side-by-side.ts';

let fake: FakeProvider;
let pair: Pair<LanguageModelV1>;

before(async () => {
  fake = await startFakeOpenAI();
  const openai = createOpenAI({
    apiKey: 'k',
    baseURL: `${fake.url}/v1`,
    compatibility: 'strict',
  });
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
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => Promise.resolve(`sunny in ${city}`),
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

test('AI SDK 4: generateText is the same as unwrapped, and is recorded with text and tokens', async () => {
  const { traces } = await pair.same(1, async (model) => {
    const { text, usage, finishReason } = await generateText({ model, prompt: 'hi' });
    return { text, usage, finishReason };
  });
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('AI SDK 4: streamText is the same as unwrapped, and is recorded with text and tokens', async () => {
  const { traces } = await pair.same(1, async (model) => {
    const { textStream, usage, finishReason } = streamText({ model, prompt: 'hi' });
    return { texts: await itemsOf(textStream), usage: await usage, reason: await finishReason };
  });
  assert.deepEqual(lastingTrace(only(traces)), recordedHello);
});

test('AI SDK 4: tool calls are recorded as with newer versions, plain and streamed', async () => {
  const settings = { prompt: 'weather?', tools: { weather }, maxSteps: 3 };
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
    assert.deepEqual(only(JSON.parse(first?.output ?? '') as unknown[]), {
      type: 'tool-call',
      toolCallId: 'call_1',
      toolName: 'weather',
      input: '{"city":"Paris"}',
    });
    assert.match(second?.input ?? '', /sunny in Paris/);
    assert.deepEqual([second?.output, second?.prompt_tokens], ['Hello there.', 1200]);
  }
});

test('AI SDK 4: generateObject is recorded with its text', async () => {
  const schema = z.object({ answer: z.number() });
  const { traces } = await pair.same(1, async (model) => {
    const { object } = await generateObject({ model, schema, prompt: 'json', mode: 'json' });
    return object;
  });
  assert.equal(only(traces).output, '{"answer":4}');
});

test('AI SDK 4: errors are recorded, plain and streamed', async () => {
  const plain = await pair.same(1, (model) =>
    generateText({ model, prompt: 'fail 400', maxRetries: 0 }),
  );
  const streamed = await pair.same(1, async (model) => {
    const options = { model, prompt: 'fail 400', maxRetries: 0, onError() {} };
    return itemsOf(streamText(options).textStream).catch(String);
  });
  for (const { traces } of [plain, streamed]) {
    const { status, error_message, model } = only(traces);
    assert.deepEqual([status, model], ['error', 'gpt-4o']);
    assert.match(error_message ?? '', /The fake fails with 400/);
  }
});

/** The middleware around one result of a model of AI SDK 4. */
async function generated(result: object) {
  const recorder = memoryRecorder();
  await vercelMiddleware(recorder).wrapGenerate({
    doGenerate: () => Promise.resolve(result),
    params: { prompt: 'hi' },
    model: { modelId: 'claude-opus-5-5', provider: 'anthropic.messages' },
  });
  return only(await recorder.settled(1));
}

test('AI SDK 4: unknown counts, which are NaN there, are left out and have no cost', async () => {
  const usage = { promptTokens: Number.NaN, completionTokens: Number.NaN };
  const { output, prompt_tokens, cost_usd } = await generated({ text: 'a', usage });
  assert.deepEqual([output, prompt_tokens, cost_usd], ['a', undefined, undefined]);
});

test('AI SDK 4: cached tokens of Anthropic count as prompt tokens', async () => {
  const usage = { promptTokens: 200, completionTokens: 30 };
  const anthropic = { cacheReadInputTokens: 1000, cacheCreationInputTokens: 300 };
  const trace = await generated({ text: 'a', usage, providerMetadata: { anthropic } });
  assert.deepEqual([trace.prompt_tokens, trace.completion_tokens], [1500, 30]);
});
