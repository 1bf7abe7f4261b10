import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText, wrapLanguageModel } from 'ai';
import OpenAI from 'openai';
import { vercelMiddleware } from '../../src/vercel-ai.ts';
import { wrapAnthropic } from '../../src/wrap-anthropic.ts';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeAnthropic } from '../support/fake-anthropic.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import type { MemoryRecorder } from '../support/memory-recorder.ts';
import { itemsOf } from '../support/side-by-side.ts';

let fakeOpenAI: FakeProvider;
let fakeAnthropic: FakeProvider;
before(async () => {
  [fakeOpenAI, fakeAnthropic] = await Promise.all([startFakeOpenAI(), startFakeAnthropic()]);
});
after(() => Promise.all([fakeOpenAI.stop(), fakeAnthropic.stop()]));

const openai = (recorder: MemoryRecorder): OpenAI =>
  wrapOpenAI(recorder, new OpenAI({ apiKey: 'k', baseURL: `${fakeOpenAI.url}/v1`, maxRetries: 0 }));
const anthropic = (recorder: MemoryRecorder): Anthropic =>
  wrapAnthropic(
    recorder,
    new Anthropic({ apiKey: 'k', baseURL: fakeAnthropic.url, maxRetries: 0 }),
  );
const vercel = (recorder: MemoryRecorder) =>
  wrapLanguageModel({
    model: createOpenAI({ apiKey: 'k', baseURL: `${fakeOpenAI.url}/v1` }).chat('gpt-4o'),
    middleware: vercelMiddleware(recorder),
  });
const messages = (content: string) => [{ role: 'user' as const, content }];

/** The fakes answer `gpt-4o` as `gpt-4o-2024-08-06` and `claude-opus-5` as `claude-opus-5-20260201`, as the real providers do. */
type Ask = (recorder: MemoryRecorder, text: string) => Promise<unknown>;
const calls: Record<string, { model: string; ask: Ask }> = {
  'OpenAI chat': {
    model: 'gpt-4o',
    ask: (recorder, text) =>
      openai(recorder).chat.completions.create({ model: 'gpt-4o', messages: messages(text) }),
  },
  'streamed OpenAI chat': {
    model: 'gpt-4o',
    ask: async (recorder, text) => {
      const body = { model: 'gpt-4o', messages: messages(text), stream: true as const };
      return itemsOf(await openai(recorder).chat.completions.create(body));
    },
  },
  'OpenAI responses': {
    model: 'gpt-4o',
    ask: (recorder, input) => openai(recorder).responses.create({ model: 'gpt-4o', input }),
  },
  'streamed OpenAI responses': {
    model: 'gpt-4o',
    ask: async (recorder, input) =>
      itemsOf(await openai(recorder).responses.create({ model: 'gpt-4o', input, stream: true })),
  },
  'OpenAI embeddings': {
    model: 'embed-small',
    ask: (recorder, input) => openai(recorder).embeddings.create({ model: 'embed-small', input }),
  },
  Anthropic: {
    model: 'claude-opus-5',
    ask: (recorder, text) =>
      anthropic(recorder).messages.create({
        model: 'claude-opus-5',
        max_tokens: 10,
        messages: messages(text),
      }),
  },
  'streamed Anthropic': {
    model: 'claude-opus-5',
    ask: async (recorder, text) => {
      const body = { model: 'claude-opus-5', max_tokens: 10, messages: messages(text) };
      return itemsOf(await anthropic(recorder).messages.create({ ...body, stream: true }));
    },
  },
  'Vercel AI': {
    model: 'gpt-4o',
    ask: (recorder, prompt) => generateText({ model: vercel(recorder), prompt, maxRetries: 0 }),
  },
  'streamed Vercel AI': {
    model: 'gpt-4o',
    ask: (recorder, prompt) =>
      itemsOf(
        streamText({ model: vercel(recorder), prompt, maxRetries: 0, onError() {} }).textStream,
      ),
  },
};

for (const [name, { model, ask }] of Object.entries(calls)) {
  test(`${name}: successes and failures are recorded under the requested model`, async () => {
    const recorder = memoryRecorder();
    await ask(recorder, 'hi');
    await ask(recorder, 'fail 400').catch(() => {});
    const traces = await recorder.settled(2);
    assert.deepEqual(
      traces.map((trace) => [trace.status, trace.model]),
      [
        ['success', model],
        ['error', model],
      ],
    );
  });
}
