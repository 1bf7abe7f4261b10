import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, wrapLanguageModel } from 'ai';
import OpenAI from 'openai';
import { TraceTally } from '../../src/client.ts';
import type { TraceTallyOptions } from '../../src/options.ts';
import { startFakeAnthropic } from '../support/fake-anthropic.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { itemsOf } from '../support/side-by-side.ts';

const run = promisify(execFile);
let server: LiveServer;
let fakeOpenAI: FakeProvider;
let fakeAnthropic: FakeProvider;

before(async () => {
  [server, fakeOpenAI, fakeAnthropic] = await Promise.all([
    startServer(),
    startFakeOpenAI(),
    startFakeAnthropic(),
  ]);
});
after(async () => {
  await Promise.all([server.stop(), fakeOpenAI.stop(), fakeAnthropic.stop()]);
});

/** A client of a fresh team, and what that team has when the client is closed. */
async function recording(
  use: (tally: TraceTally) => Promise<unknown>,
  options: TraceTallyOptions = {},
) {
  const apiKey = await server.freshKey();
  const errors: Error[] = [];
  const onError = (error: Error): void => void errors.push(error);
  const settings = { baseUrl: server.url, apiKey, onError, closeTimeoutMs: 30_000 };
  const tally = new TraceTally({ ...settings, ...options });
  await use(tally);
  await tally.flush();
  const { traces } = await tally.traces.list();
  const overview = await tally.analytics.overview();
  await tally.close();
  assert.deepEqual(errors, []);
  return { traces: traces.toReversed(), overview };
}

const labels = { feature: 'end-to-end', user: 'user-1' };
const messages = [{ role: 'user' as const, content: 'hi' }];

test('OpenAI calls are stored with their cost', async () => {
  const { traces, overview } = await recording(async (tally) => {
    const bare = new OpenAI({ apiKey: 'k', baseURL: `${fakeOpenAI.url}/v1`, maxRetries: 0 });
    const openai = tally.wrapOpenAI(bare, labels);
    const body = { model: 'gpt-4o', messages };
    await openai.chat.completions.create(body);
    await itemsOf(await openai.chat.completions.create({ ...body, stream: true }));
    await openai.responses.create({ model: 'gpt-4o', input: 'fail 400' }).catch(() => {});
  });
  const seen = traces.map(({ status, output, cost_usd, prompt_tokens, feature_name }) => ({
    status,
    output,
    cost_usd,
    prompt_tokens,
    feature_name,
  }));
  const stored = {
    status: 'success',
    output: 'Hello there.',
    cost_usd: 0.00205,
    prompt_tokens: 1200,
    feature_name: 'end-to-end',
  };
  const failed = { ...stored, status: 'error', output: null, cost_usd: null, prompt_tokens: null };
  assert.deepEqual(seen, [stored, stored, failed]);
  assert.deepEqual([overview.total_calls, overview.total_cost_usd], [3, 0.0041]);
});

test('what the provider reports is stored, and the environment of the client', async () => {
  const fromMs = Date.now();
  const { traces } = await recording(
    async (tally) => {
      const bare = new OpenAI({ apiKey: 'k', baseURL: `${fakeOpenAI.url}/v1`, maxRetries: 0 });
      const openai = tally.wrapOpenAI(bare, { ...labels, session: 's-1', run: 'r-1' });
      const body = { model: 'gpt-4o', messages };
      await itemsOf(await openai.chat.completions.create({ ...body, stream: true }));
      const failing = {
        model: 'gpt-4o',
        messages: [{ role: 'user' as const, content: 'fail 429' }],
      };
      await openai.chat.completions.create(failing).catch(() => {});
      tally.enqueue({ model: 'own', metadata: { tier: 'gold' } });
    },
    { environment: 'staging' },
  );
  const [streamed, failed, own] = traces;
  const common = { environment: 'staging', provider: 'openai', session_id: 's-1', run_id: 'r-1' };
  const answered = {
    ...common,
    response_model: 'gpt-4o-2024-08-06',
    cache_read_tokens: 1000,
    reasoning_tokens: 12,
  };
  assert.partialDeepStrictEqual(streamed, answered);
  assert.ok((streamed?.ttft_ms ?? -1) >= 0);
  const startMs = Date.parse(streamed?.started_at ?? '');
  assert.ok(startMs >= fromMs && startMs <= Date.parse(streamed?.created_at ?? ''));
  assert.partialDeepStrictEqual(failed, { ...common, error_type: 'rate_limit' });
  assert.partialDeepStrictEqual(own, { environment: 'staging', metadata: { tier: 'gold' } });
});

test('Anthropic calls are stored with their cost', async () => {
  const { traces } = await recording(async (tally) => {
    const bare = new Anthropic({ apiKey: 'k', baseURL: fakeAnthropic.url, maxRetries: 0 });
    const body = { model: 'claude-opus-5-5', max_tokens: 100, messages };
    await tally.wrapAnthropic(bare, labels).messages.stream(body).finalMessage();
  });
  const [{ model, output, prompt_tokens, cost_usd } = {} as (typeof traces)[number]] = traces;
  assert.deepEqual(
    [traces.length, model, output, prompt_tokens, cost_usd],
    [1, 'claude-opus-5-5', 'Hello there.', 1500, 0.0031],
  );
});

test('Vercel AI SDK calls are stored with their cost', async () => {
  const { traces } = await recording(async (tally) => {
    const openai = createOpenAI({ apiKey: 'k', baseURL: `${fakeOpenAI.url}/v1` });
    const middleware = tally.middleware(labels);
    const model = wrapLanguageModel({ model: openai.chat('gpt-4o'), middleware });
    await generateText({ model, prompt: 'hi' });
  });
  const [{ model, output, cost_usd } = {} as (typeof traces)[number]] = traces;
  assert.deepEqual(
    [traces.length, model, output, cost_usd],
    [1, 'gpt-4o', 'Hello there.', 0.00205],
  );
});

test('measured calls are stored', async () => {
  const { traces } = await recording(async (tally) => {
    const call = { model: 'my-model', input: 'question', ...labels };
    const sum: number = await tally.measure(call, async (set) => {
      set({ output: 'answer', prompt_tokens: 3 });
      return 4;
    });
    assert.equal(sum, 4);
  });
  const [{ model, input, output, cost_usd } = {} as (typeof traces)[number]] = traces;
  assert.deepEqual([model, input, output, cost_usd], ['my-model', 'question', 'answer', null]);
});

test('a process that ends right after its only call loses neither the trace nor its cost', async () => {
  const apiKey = await server.freshKey();
  const program = fileURLToPath(new URL('../support/ending-program.ts', import.meta.url));
  const env = { TRACETALLY_URL: server.url, TRACETALLY_API_KEY: apiKey };
  const { stderr } = await run(process.execPath, [program], { env, timeout: 60_000 });
  assert.equal(stderr, '');
  const { traces } = await new TraceTally({ baseUrl: server.url, apiKey }).traces.list();
  assert.deepEqual(
    traces.map(({ output, cost_usd }) => [output, cost_usd]),
    [['Goodbye.', 0.0035]],
  );
});
