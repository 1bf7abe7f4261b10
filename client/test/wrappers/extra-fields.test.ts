import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText, wrapLanguageModel } from 'ai';
import OpenAI from 'openai';
import type { TraceInput } from '../../src/api-types.ts';
import { measure } from '../../src/measure.ts';
import type { Labels } from '../../src/recorder.ts';
import { vercelMiddleware } from '../../src/vercel-ai.ts';
import { wrapAnthropic } from '../../src/wrap-anthropic.ts';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeAnthropic } from '../support/fake-anthropic.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import { pauseMs } from '../support/fake-provider.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import type { MemoryRecorder } from '../support/memory-recorder.ts';
import { itemsOf, only } from '../support/side-by-side.ts';

let fakeOpenAI: FakeProvider;
let fakeAnthropic: FakeProvider;
before(async () => {
  [fakeOpenAI, fakeAnthropic] = await Promise.all([startFakeOpenAI(), startFakeAnthropic()]);
});
after(() => Promise.all([fakeOpenAI.stop(), fakeAnthropic.stop()]));

const settings = { apiKey: 'k', maxRetries: 0 };
const openai = (recorder: MemoryRecorder, labels?: Labels, url = fakeOpenAI.url): OpenAI =>
  wrapOpenAI(recorder, new OpenAI({ ...settings, baseURL: `${url}/v1` }), labels);
const anthropic = (recorder: MemoryRecorder, url = fakeAnthropic.url): Anthropic =>
  wrapAnthropic(recorder, new Anthropic({ ...settings, baseURL: url }));
const vercel = (recorder: MemoryRecorder, url = fakeOpenAI.url) =>
  wrapLanguageModel({
    model: createOpenAI({ apiKey: 'k', baseURL: `${url}/v1` }).chat('gpt-4o'),
    middleware: vercelMiddleware(recorder),
  });
const chat = (content: string) => ({
  model: 'gpt-4o',
  messages: [{ role: 'user' as const, content }],
});
const message = (content: string) => ({ ...chat(content), model: 'claude-opus-5', max_tokens: 10 });

interface Kind {
  ask(recorder: MemoryRecorder, text: string, url?: string): Promise<unknown>;
  isStream?: true;
  expected: TraceInput;
}

const counts = { cache_read_tokens: 1000, reasoning_tokens: 12 };
const ofOpenAI = {
  model: 'gpt-4o',
  response_model: 'gpt-4o-2024-08-06',
  provider: 'openai',
  ...counts,
};
const ofAnthropic = {
  model: 'claude-opus-5',
  response_model: 'claude-opus-5-20260201',
  provider: 'anthropic',
  ...counts,
  cache_write_tokens: 300,
};

const kinds: Readonly<Record<string, Kind>> = {
  'OpenAI chat': {
    ask: (recorder, text, url) => openai(recorder, {}, url).chat.completions.create(chat(text)),
    expected: ofOpenAI,
  },
  'streamed OpenAI chat': {
    ask: async (recorder, text, url) => {
      const body = { ...chat(text), stream: true as const };
      return itemsOf(await openai(recorder, {}, url).chat.completions.create(body));
    },
    isStream: true,
    expected: ofOpenAI,
  },
  'OpenAI chat through the streaming helper': {
    ask: (recorder, text, url) =>
      openai(recorder, {}, url).chat.completions.stream(chat(text)).finalChatCompletion(),
    isStream: true,
    expected: ofOpenAI,
  },
  'OpenAI responses': {
    ask: (recorder, input, url) =>
      openai(recorder, {}, url).responses.create({ model: 'gpt-4o', input }),
    expected: { ...ofOpenAI, cache_write_tokens: 0 },
  },
  'streamed OpenAI responses': {
    ask: async (recorder, input, url) => {
      const body = { model: 'gpt-4o', input, stream: true as const };
      return itemsOf(await openai(recorder, {}, url).responses.create(body));
    },
    isStream: true,
    expected: { ...ofOpenAI, cache_write_tokens: 0 },
  },
  Anthropic: {
    ask: (recorder, text, url) => anthropic(recorder, url).messages.create(message(text)),
    expected: ofAnthropic,
  },
  'streamed Anthropic': {
    ask: async (recorder, text, url) => {
      const body = { ...message(text), stream: true as const };
      return itemsOf(await anthropic(recorder, url).messages.create(body));
    },
    isStream: true,
    expected: ofAnthropic,
  },
  'Anthropic through the streaming helper': {
    ask: (recorder, text, url) =>
      anthropic(recorder, url).messages.stream(message(text)).finalMessage(),
    isStream: true,
    expected: ofAnthropic,
  },
  'Vercel AI': {
    ask: (recorder, prompt, url) =>
      generateText({ model: vercel(recorder, url), prompt, maxRetries: 0 }),
    expected: ofOpenAI,
  },
  'streamed Vercel AI': {
    ask: (recorder, prompt, url) => {
      const model = vercel(recorder, url);
      return itemsOf(streamText({ model, prompt, maxRetries: 0, onError() {} }).textStream);
    },
    isStream: true,
    expected: ofOpenAI,
  },
};

async function traceOf({ ask }: Kind, text: string, url?: string): Promise<TraceInput> {
  const recorder = memoryRecorder();
  await ask(recorder, text, url).catch(() => {});
  return only(await recorder.settled(1));
}

function picked(trace: TraceInput, names: readonly string[]): object {
  const fields = trace as unknown as Record<string, unknown>;
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}

for (const [name, kind] of Object.entries(kinds)) {
  describe(name, () => {
    test('provider, exact model, cached and reasoning tokens are recorded', async () => {
      const trace = await traceOf(kind, 'hi');
      assert.deepEqual(picked(trace, Object.keys(kind.expected)), kind.expected);
      assert.equal(trace.error_type, undefined);
    });

    test('the start of the call is recorded', async () => {
      const fromMs = Date.now();
      const { started_at: startedAt } = await traceOf(kind, 'hi');
      assert.match(startedAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const startMs = Date.parse(startedAt ?? '');
      assert.ok(startMs >= fromMs && startMs <= Date.now(), `${startedAt}`);
    });

    test(
      kind.isStream
        ? 'the time to the first token is recorded, not the time to the first event'
        : 'no time to the first token is recorded for an answer that is not streamed',
      async () => {
        const { ttft_ms: ttft, latency_ms: latency } = await traceOf(kind, 'pause');
        if (!kind.isStream) assert.equal(ttft, undefined);
        else {
          // Timers of two processes may differ by a millisecond or two.
          assert.ok((ttft ?? 0) >= pauseMs - 5, `${ttft}`);
          assert.ok((ttft ?? 0) <= (latency ?? 0), `${ttft} of ${latency}`);
        }
      },
    );

    for (const [status, type] of Object.entries({
      400: 'invalid_request',
      401: 'authentication',
      404: 'not_found',
      429: 'rate_limit',
      500: 'server_error',
      529: 'overloaded',
    })) {
      test(`status ${status} is recorded as ${type}, with the provider and without token counts`, async () => {
        const trace = await traceOf(kind, `fail ${status}`);
        assert.deepEqual(picked(trace, ['status', 'error_type', 'provider', 'cache_read_tokens']), {
          status: 'error',
          error_type: type,
          provider: kind.expected.provider,
          cache_read_tokens: undefined,
        });
      });
    }

    test('a failed connection is recorded as connection', async () => {
      const closed = await startFakeOpenAI();
      await closed.stop();
      assert.equal((await traceOf(kind, 'hi', closed.url)).error_type, 'connection');
    });
  });
}

test('errors inside a stream are recorded with their kind', async () => {
  const recorder = memoryRecorder();
  const chatStream = openai(recorder).chat.completions.create({
    ...chat('break off'),
    stream: true,
  });
  await itemsOf(await chatStream).catch(() => {});
  const messages = anthropic(recorder).messages.create({ ...message('break off'), stream: true });
  await itemsOf(await messages).catch(() => {});
  const response = { model: 'gpt-4o', input: 'broken', stream: true as const };
  await itemsOf(await openai(recorder).responses.create(response));
  const types = (await recorder.settled(3)).map(({ error_type: type }) => type);
  assert.deepEqual(types, ['server_error', 'overloaded', 'server_error']);
});

test('timeouts and aborts are told apart', async () => {
  const recorder = memoryRecorder();
  const body = { ...chat('stall'), stream: true as const };
  const slow = openai(recorder).chat.completions;
  // What AbortSignal.timeout does, but never before the stream has begun.
  const timeout = new AbortController();
  const read = itemsOf(await slow.create(body, { signal: timeout.signal }));
  timeout.abort(new DOMException('Aborted due to timeout', 'TimeoutError'));
  await read.catch(() => {});
  const controller = new AbortController();
  const aborted = slow.create(body, { signal: controller.signal });
  controller.abort();
  await aborted.catch(() => {});
  const types = (await recorder.settled(2)).map(({ error_type: type }) => type);
  assert.deepEqual(types, ['timeout', 'aborted']);
});

test('labels name the session, the run and another provider, and wrapping again adds labels', async () => {
  const recorder = memoryRecorder();
  const first = openai(recorder, { session: 's-1', provider: 'groq', user: 'u-1' });
  const second = wrapOpenAI(recorder, first, { run: 'r-1', user: 'u-2', session: undefined });
  await second.chat.completions.create(chat('hi'));
  const trace = only(await recorder.settled(1));
  const names = ['session_id', 'run_id', 'provider', 'user_identifier'];
  assert.deepEqual(Object.values(picked(trace, names)), ['s-1', 'r-1', 'groq', 'u-2']);
});

test('measure records labels, the exact model and the parts of token counts', async () => {
  const recorder = memoryRecorder();
  const labels = { session: 's', run: 'r', provider: 'openai' };
  measure(recorder, { model: 'gpt-4o', ...labels }, (set) =>
    set({
      response_model: 'gpt-4o-2024-08-06',
      prompt_tokens: 10,
      cached_tokens: 6,
      cache_write_tokens: 4,
      completion_tokens: 5,
      reasoning_tokens: 5,
    }),
  );
  const expected = {
    response_model: 'gpt-4o-2024-08-06',
    provider: 'openai',
    session_id: 's',
    run_id: 'r',
    cache_read_tokens: 6,
    cache_write_tokens: 4,
    reasoning_tokens: 5,
  };
  const trace = only(await recorder.settled(1));
  assert.deepEqual(picked(trace, Object.keys(expected)), expected);
});

test('parts that are more than their count are left out, since the server would reject the trace', async () => {
  const recorder = memoryRecorder();
  measure(recorder, { model: 'm' }, (set) =>
    set({
      prompt_tokens: 10,
      cached_tokens: 7,
      cache_write_tokens: 4,
      completion_tokens: 5,
      reasoning_tokens: 6,
    }),
  );
  const trace = only(await recorder.settled(1));
  const parts = ['cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens'];
  assert.deepEqual([trace.prompt_tokens, trace.completion_tokens], [10, 5]);
  for (const name of parts) assert.ok(!(name in trace), name);
});

test('the exact model is left out if it is the requested one', async () => {
  const recorder = memoryRecorder();
  await openai(recorder).chat.completions.create({ ...chat('hi'), model: 'gpt-4o-2024-08-06' });
  assert.ok(!('response_model' in only(await recorder.settled(1))));
});
