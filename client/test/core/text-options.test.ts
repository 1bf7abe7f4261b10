import assert from 'node:assert/strict';
import { test, after, before } from 'node:test';
import type { ListedTrace, TraceInput } from '../../src/index.ts';
import { scriptedClient } from '../support/scripted-client.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';

let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const mask = (text: string): string => text.replaceAll('secret', '***');
const withSecrets: TraceInput = {
  model: 'm',
  input: 'a secret prompt',
  output: 'a secret answer',
  error_message: 'a secret error',
};
const texts = ({ input, output, error_message }: ListedTrace) => [input, output, error_message];

function bodiesOf(seen: readonly { body: Uint8Array }[]): string {
  return seen.map(({ body }) => new TextDecoder().decode(body)).join('\n');
}

test('mask is applied to input, output and error_message of every trace', async () => {
  const { client, reader, seen } = await scriptedClient(server, [], { mask, gzip: false });
  client.enqueue(withSecrets);
  await client.record(withSecrets);
  await client
    .measure({ model: 'm', input: 'a secret prompt' }, async (set) => {
      set({ output: 'a secret answer' });
      throw new Error('a secret error');
    })
    .catch(() => {});
  await client.flush();
  const { traces } = await reader.traces.list();
  assert.deepEqual(
    traces.map(texts),
    Array.from({ length: 3 }, () => ['a *** prompt', 'a *** answer', 'a *** error']),
  );
  assert.ok(!bodiesOf(seen).includes('secret'));
});

test('text that is not a string is masked as well, and toJSON does not bypass the mask', async () => {
  const { client, seen, reader } = await scriptedClient(server, [], { mask, gzip: false });
  const odd: unknown[] = [
    { model: 'm', input: { messages: ['secret'] } },
    { toJSON: () => ({ model: 'm', input: 'secret' }) },
    { model: 'm', input: { toJSON: () => 'secret' } },
  ];
  for (const trace of odd) client.enqueue(trace as TraceInput);
  await client.flush();
  assert.ok(!bodiesOf(seen).includes('secret'));
  const { traces } = await reader.traces.list();
  assert.deepEqual(
    traces.map(({ input }) => input),
    ['***', '***', '{"messages":["***"]}'],
  );
});

const failingMasks: Record<string, (text: string) => unknown> = {
  'throws an error': (text) => {
    throw new Error(text);
  },
  'returns no string': () => undefined,
  'is asynchronous': (text) => Promise.reject(new Error(text)),
};
for (const [what, failing] of Object.entries(failingMasks)) {
  test(`text is replaced by a marker and reported once if mask ${what}`, async () => {
    const options = { mask: failing as (text: string) => string, gzip: false };
    const { client, reader, seen, errors } = await scriptedClient(server, [], options);
    client.enqueue(withSecrets);
    await client.record(withSecrets);
    await client.flush();
    const { traces } = await reader.traces.list();
    const marker = '[mask failed]';
    assert.deepEqual(traces.map(texts), [
      [marker, marker, marker],
      [marker, marker, marker],
    ]);
    assert.ok(!bodiesOf(seen).includes('secret'));
    assert.deepEqual(
      errors.map(({ code }) => code),
      ['mask_failed'],
    );
    assert.ok(!String(errors[0]?.message).includes('secret'));
  });
}

test('captureText: false sends neither input nor output, and keeps the rest', async () => {
  const options = { captureText: false, mask, gzip: false };
  const { client, reader, seen } = await scriptedClient(server, [], options);
  client.enqueue({ ...withSecrets, prompt_tokens: 7 });
  await client.record(withSecrets);
  await client.flush();
  const { traces } = await reader.traces.list();
  assert.deepEqual(traces.map(texts), [
    [null, null, 'a *** error'],
    [null, null, 'a *** error'],
  ]);
  assert.equal(traces[1]?.prompt_tokens ?? traces[0]?.prompt_tokens, 7);
  assert.ok(!bodiesOf(seen).includes('secret'));
});

test('sampleRate decides about each enqueued or measured call, and record is always sent', async () => {
  for (const [sampleRate, fewest, most] of [
    [0, 0, 0],
    [0.5, 350, 650],
    [1, 1_000, 1_000],
  ] as const) {
    const { client } = await scriptedClient(server, [], { sampleRate });
    for (let at = 0; at < 500; at++) {
      client.enqueue({ model: 'm' });
      client.measure({ model: 'm' }, () => 'result');
    }
    assert.notEqual(await client.record({ model: 'm' }), null);
    await client.flush();
    const { sent, dropped, rejected } = client.stats();
    // With 1,000 calls at 0.5, a result outside of these bounds has a probability below 1e-20.
    assert.ok(sent >= fewest && sent <= most, `${sent} of 1,000 at ${sampleRate}`);
    assert.deepEqual([dropped, rejected], [0, 0]);
  }
});
