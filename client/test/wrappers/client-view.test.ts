import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI, { AzureOpenAI } from 'openai';
import type { Recorder } from '../../src/recorder.ts';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import { itemsOf, only } from '../support/side-by-side.ts';

let fake: FakeProvider;

before(async () => {
  fake = await startFakeOpenAI();
});
after(() => fake.stop());

const makeClient = (): OpenAI =>
  new OpenAI({ apiKey: 'k', baseURL: `${fake.url}/v1`, maxRetries: 0 });
const hello = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'hi' }] };

test('wrapping does not change the given client', async () => {
  const client = makeClient();
  const shape = (): unknown[] => [
    Reflect.ownKeys(client),
    Reflect.ownKeys(client.chat.completions),
    client.chat.completions.create,
    Object.getPrototypeOf(client.chat.completions),
  ];
  const earlier = shape();
  const recorder = memoryRecorder();
  await wrapOpenAI(recorder, client).chat.completions.create(hello);
  assert.deepEqual(shape(), earlier);
  await recorder.settled(1);
  await client.chat.completions.create(hello);
  assert.equal((await recorder.settled(1)).length, 1);
});

test('the wrapped client is an instance of its class, with the same fields and methods', async () => {
  const client = makeClient();
  const wrapped = wrapOpenAI(memoryRecorder(), client);
  assert.ok(wrapped instanceof OpenAI);
  assert.equal(wrapped.constructor, OpenAI);
  assert.equal(wrapped.apiKey, 'k');
  assert.equal(wrapped.baseURL, client.baseURL);
  assert.deepEqual(Object.keys(wrapped), Object.keys(client));
  assert.equal(wrapped.chat.completions, wrapped.chat.completions);
  assert.equal(wrapped.chat.completions.create, wrapped.chat.completions.create);
  assert.equal(wrapped.models.list, wrapped.models.list);
  // Both use private fields of the client.
  await assert.rejects(wrapped.post('/nowhere', {}), OpenAI.NotFoundError);
  await assert.rejects(wrapped.models.retrieve('x'), OpenAI.NotFoundError);
});

test('a property that is set on the wrapped client is set on the client', () => {
  const client = makeClient();
  const wrapped = wrapOpenAI(memoryRecorder(), client);
  wrapped.apiKey = 'other';
  wrapped.maxRetries = 5;
  assert.deepEqual([client.apiKey, client.maxRetries], ['other', 5]);
});

test('a detached method works', async () => {
  const recorder = memoryRecorder();
  const { create } = wrapOpenAI(recorder, makeClient()).chat.completions;
  assert.equal((await create(hello)).id, 'chatcmpl-1');
  only(await recorder.settled(1));
});

test('a copy made by withOptions is recorded as well', async () => {
  const recorder = memoryRecorder();
  const wrapped = wrapOpenAI(recorder, makeClient(), { feature: 'copied' });
  const copy = wrapped.withOptions({ timeout: 5_000 });
  assert.ok(copy instanceof OpenAI && copy.timeout === 5_000);
  await copy.chat.completions.create(hello);
  assert.equal(only(await recorder.settled(1)).feature_name, 'copied');
});

test('wrapping again adds labels and does not record twice', async () => {
  const recorder = memoryRecorder();
  const base = wrapOpenAI(recorder, makeClient(), { feature: 'chat', user: 'somebody' });
  await wrapOpenAI(recorder, base, { user: 'user-2' }).chat.completions.create(hello);
  await itemsOf(
    await wrapOpenAI(recorder, base, { feature: 'search' }).chat.completions.create({
      ...hello,
      stream: true,
    }),
  );
  const labels = (await recorder.settled(2)).map((trace) => [
    trace.feature_name,
    trace.user_identifier,
  ]);
  assert.deepEqual(labels, [
    ['chat', 'user-2'],
    ['search', 'somebody'],
  ]);
});

test('two recorders record each call once, and the stream is the same as unwrapped', async () => {
  const [first, second] = [memoryRecorder(), memoryRecorder()];
  const client = makeClient();
  const bare = await itemsOf(await client.chat.completions.create({ ...hello, stream: true }));
  const both = wrapOpenAI(second, wrapOpenAI(first, client));
  const seen = await itemsOf(await both.chat.completions.create({ ...hello, stream: true }));
  assert.deepEqual(seen, bare);
  assert.equal(only(await first.settled(1)).prompt_tokens, 1200);
  assert.equal(only(await second.settled(1)).prompt_tokens, 1200);
});

test('labels that the server would reject are corrected or left out', async () => {
  const recorder = memoryRecorder();
  const labels = { feature: `a\u0000b${'x'.repeat(300)}`, user: '' };
  await wrapOpenAI(recorder, makeClient(), labels).chat.completions.create(hello);
  const { feature_name, user_identifier } = only(await recorder.settled(1));
  assert.equal(feature_name, `a b${'x'.repeat(252)}`);
  assert.equal(user_identifier, undefined);
});

test('the Azure client is recorded as well', async () => {
  const recorder = memoryRecorder();
  const azure = new AzureOpenAI({
    apiKey: 'k',
    baseURL: `${fake.url}/v1`,
    apiVersion: '2026-01-01',
    maxRetries: 0,
  });
  const wrapped = wrapOpenAI(recorder, azure);
  await assert.rejects(wrapped.chat.completions.create(hello), OpenAI.NotFoundError);
  assert.ok(fake.requests.at(-1)?.path.startsWith('/v1/deployments/gpt-4o/'));
  assert.equal(only(await recorder.settled(1)).status, 'error');
});

test('a frozen client works, without being recorded', async () => {
  const client = Object.freeze(makeClient());
  const wrapped = wrapOpenAI(memoryRecorder(), client);
  assert.equal((await wrapped.chat.completions.create(hello)).id, 'chatcmpl-1');
});

test('a client that returns plain promises or values is recorded', async () => {
  const recorder = memoryRecorder();
  const answer = { model: 'mock', choices: [{ message: { content: 'yes' } }] };
  const fakes = [() => Promise.resolve(answer), () => answer];
  for (const create of fakes) {
    const wrapped = wrapOpenAI(recorder, { chat: { completions: { create } } });
    assert.equal(await wrapped.chat.completions.create(), answer);
  }
  const failing = { embeddings: { create: () => Promise.reject(new Error('no')) } };
  await assert.rejects(wrapOpenAI(recorder, failing).embeddings.create(), /^Error: no$/);
  const throwing = {
    embeddings: {
      create: (): never => {
        throw new Error('at once');
      },
    },
  };
  assert.throws(() => wrapOpenAI(recorder, throwing).embeddings.create(), /^Error: at once$/);
  const traces = await recorder.settled(4);
  assert.deepEqual(
    traces.map(({ model, status, output, error_message }) => [
      model,
      status,
      output,
      error_message,
    ]),
    [
      ['mock', 'success', 'yes', undefined],
      ['mock', 'success', 'yes', undefined],
      ['unknown', 'error', undefined, 'no'],
      ['unknown', 'error', undefined, 'at once'],
    ],
  );
});

test('an invalid answer reaches the caller, is recorded and reported', async () => {
  const recorder = memoryRecorder();
  const answer = { choices: 'none' };
  const create = () => Promise.resolve(answer);
  const wrapped = wrapOpenAI(recorder, { chat: { completions: { create } } });
  assert.equal(await wrapped.chat.completions.create(), answer);
  assert.equal(only(await recorder.settled(1)).status, 'success');
  assert.equal(recorder.errors.length, 1);
});

test('a request that cannot be converted to JSON is sent without being recorded, and that is reported', async () => {
  const recorder = memoryRecorder();
  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  const create = (body: unknown) => Promise.resolve(body);
  const wrapped = wrapOpenAI(recorder, { chat: { completions: { create } } });
  const body = { messages: [loop] };
  assert.equal(await wrapped.chat.completions.create(body), body);
  assert.equal(recorder.errors.length, 1);
});

test('an error of the recorder does not reach the caller', async () => {
  const recorder: Recorder = {
    enqueue() {
      throw new Error('full');
    },
    report() {},
    reportOnce() {},
  };
  const wrapped = wrapOpenAI(recorder, makeClient());
  assert.equal((await wrapped.chat.completions.create(hello)).id, 'chatcmpl-1');
  const stream = await wrapped.chat.completions.create({ ...hello, stream: true });
  assert.equal((await itemsOf(stream)).length, 6);
});
