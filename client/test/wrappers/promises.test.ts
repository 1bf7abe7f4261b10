import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import OpenAI from 'openai';
import { APIPromise } from 'openai/core/api-promise';
import { Stream } from 'openai/core/streaming';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { memoryRecorder, turn } from '../support/memory-recorder.ts';
import { itemsOf, lastingTrace, only, pairOf } from '../support/side-by-side.ts';
import type { Pair } from '../support/side-by-side.ts';

const run = promisify(execFile);
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
const askStream = (content: string) => ({ ...ask(content), stream: true as const });

test('withResponse returns the data and the response', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const promise = openai.chat.completions.create(ask('hi'));
    const { data, response, request_id } = await promise.withResponse();
    const isOwn = promise instanceof APIPromise && response instanceof Response;
    return { data, status: response.status, request_id, isOwn };
  });
  assert.equal(only(traces).output, 'Hello there.');
});

test('withResponse returns a stream that is recorded when it is read', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const { data, response } = await openai.chat.completions.create(askStream('hi')).withResponse();
    return { items: await itemsOf(data), isStream: data instanceof Stream, ok: response.ok };
  });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['Hello there.', 1200]);
});

test('asResponse returns the raw response, and the call is recorded with its answer', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const response = await openai.chat.completions.create(ask('hi')).asResponse();
    return { used: response.bodyUsed, body: await response.json() };
  });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['Hello there.', 1200]);
});

test('asResponse of a stream does not read it: the call is recorded without an answer', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const body = { ...askStream('hi'), stream_options: null };
    return (await openai.chat.completions.create(body).asResponse()).text();
  });
  assert.deepEqual([only(traces).status, only(traces).output], ['success', undefined]);
});

test("asResponse of a failed call throws the SDK's error", async () => {
  const { traces } = await pair.same(1, (openai) =>
    openai.chat.completions.create(ask('fail 400')).asResponse(),
  );
  assert.equal(only(traces).status, 'error');
});

test('several uses of then, catch, finally and await make one request and one trace', async () => {
  const { requests } = await pair.same(1, async (openai) => {
    const promise = openai.chat.completions.create(ask('hi'));
    const ids = await Promise.all([
      promise,
      promise.then(({ id }) => id),
      promise.catch(() => 'no'),
      promise.finally(() => {}),
      promise.asResponse().then(({ status }) => status),
    ]);
    return [...ids, await promise];
  });
  assert.equal(requests.wrapped.length, 1);
});

test('tee returns two independent streams, and records one trace', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const [left, right] = (await openai.chat.completions.create(askStream('hi'))).tee();
    return [await itemsOf(left), await itemsOf(right)];
  });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['Hello there.', 1200]);
});

test('toReadableStream yields the same bytes, and records one trace', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create(askStream('hi'));
    return new Response(stream.toReadableStream()).text();
  });
  assert.equal(only(traces).output, 'Hello there.');
});

test('cancelling a readable stream is recorded as a success with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create(askStream('slow'));
    const reader = (stream.toReadableStream() as ReadableStream<Uint8Array>).getReader();
    for (let i = 0; i < 3; i++) await reader.read();
    await reader.cancel();
  });
  assert.equal(only(traces).status, 'success');
  assert.match(only(traces).output ?? '', /^(tick )+$/);
});

test("reading a stream twice fails with the SDK's error, and is recorded once", async () => {
  const { traces, outcome } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create(askStream('hi'));
    await itemsOf(stream);
    return itemsOf(stream);
  });
  assert.match(JSON.stringify(outcome), /consumed stream/);
  assert.equal(only(traces).status, 'success');
});

test('a rejected second reader does not disturb the first', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create(askStream('hi'));
    const first = stream[Symbol.asyncIterator]();
    await first.next();
    const second = await itemsOf(stream).catch(String);
    return { second, rest: await itemsOf({ [Symbol.asyncIterator]: () => first }) };
  });
  assert.deepEqual([only(traces).status, only(traces).output], ['success', 'Hello there.']);
});

test('throwing into the iterator of a stream is recorded as a success with the text so far', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create(askStream('slow'));
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const first = await iterator.next();
    const thrown = await iterator.throw?.(new Error('mine')).catch((error: unknown) => error);
    return { first, thrown: String(thrown), last: await iterator.next() };
  });
  assert.deepEqual([only(traces).status, only(traces).output], ['success', 'tick ']);
});

test('controller.abort ends the stream as unwrapped', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const stream = await openai.chat.completions.create(askStream('slow'));
    let count = 0;
    for await (const _ of stream) if (++count === 4) stream.controller.abort();
    return count;
  });
  assert.deepEqual([only(traces).status, only(traces).output], ['success', 'tick tick tick ']);
});

test('a call that is never awaited makes one request and is recorded with its answer', async () => {
  const before = fake.requests.length;
  const recorder = memoryRecorder();
  void wrapOpenAI(recorder, pair.bare).chat.completions.create(ask('hi'));
  const trace = only(await recorder.settled(1));
  assert.deepEqual([trace.output, trace.prompt_tokens], ['Hello there.', 1200]);
  assert.equal(fake.requests.length, before + 1);
});

/** Resolves when the reply is there and every listener has run. */
async function replyOf(promise: object): Promise<void> {
  await (promise as { responsePromise: Promise<unknown> }).responsePromise;
  await turn(20);
}

test('a call that is awaited long after its reply is recorded once and returns its answer', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const promise = openai.chat.completions.create(ask('hi'));
    await replyOf(promise);
    return promise;
  });
  assert.equal(only(traces).output, 'Hello there.');
});

test('a stream that is awaited long after its start is recorded when it is read', async () => {
  const { traces } = await pair.same(1, async (openai) => {
    const promise = openai.chat.completions.create(askStream('hi'));
    await replyOf(promise);
    return itemsOf(await promise);
  });
  assert.deepEqual([only(traces).output, only(traces).prompt_tokens], ['Hello there.', 1200]);
});

const program = fileURLToPath(new URL('../support/rejections-program.ts', import.meta.url));

async function rejections(which: 'bare' | 'wrapped', how: 'dropped' | 'caught') {
  const { stdout } = await run(process.execPath, [program, fake.url, which, how], {
    timeout: 60_000,
  });
  return JSON.parse(stdout) as { unhandled: string[]; statuses: string[] };
}

test('failures that are never awaited are unhandled rejections as unwrapped, and recorded', async () => {
  const bare = await rejections('bare', 'dropped');
  const ours = await rejections('wrapped', 'dropped');
  assert.deepEqual(ours.unhandled, bare.unhandled);
  assert.equal(ours.unhandled.length, 3);
  assert.deepEqual(ours.statuses, ['error', 'error', 'error']);
});

test('failures that are caught cause no unhandled rejection, and are recorded', async () => {
  const { unhandled, statuses } = await rejections('wrapped', 'caught');
  assert.deepEqual(unhandled, []);
  assert.deepEqual(
    statuses,
    Array.from({ length: 7 }, () => 'error'),
  );
});

test('a stream that is never read is recorded when it is garbage collected', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const recorder = memoryRecorder();
  const openai = wrapOpenAI(recorder, pair.bare);
  await (async () => {
    void openai.chat.completions.create(askStream('hi'));
    await openai.chat.completions.create(askStream('hi'));
    const half = (await openai.chat.completions.create(askStream('hi')))[Symbol.asyncIterator]();
    await half.next();
    await half.next();
  })();
  for (let i = 0; i < 200 && recorder.traces.length < 3; i++) {
    await turn(10);
    collect();
  }
  const traces = (await recorder.settled(3)).map(lastingTrace);
  const outputs = traces.map(({ status, output }) => `${String(status)}: ${output ?? 'nothing'}`);
  assert.deepEqual(outputs.sort(), ['success: Hel', 'success: nothing', 'success: nothing']);
});
