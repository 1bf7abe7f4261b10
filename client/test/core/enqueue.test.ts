import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { TraceTally } from '../../src/index.ts';
import type { TraceInput } from '../../src/index.ts';
import { problem, tracesIn } from '../support/scripted-fetch.ts';
import type { Step } from '../support/scripted-fetch.ts';
import { scriptedClient, storedInputs } from '../support/scripted-client.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { until } from '../support/until.ts';

let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const numbered = (count: number): TraceInput[] =>
  Array.from({ length: count }, (_, index) => ({
    model: 'm',
    input: `t${index}`,
    cost_usd: 0.001,
  }));

test('traces are sent in batches by count and in order, without payloads in the reply', async () => {
  const { client, seen, reader, errors } = await scriptedClient(server);
  for (const trace of numbered(250)) client.enqueue(trace);
  await client.flush();
  const sizes = await Promise.all(seen.map(async (request) => (await tracesIn(request)).length));
  assert.deepEqual(sizes, [100, 100, 50]);
  for (const { url, method, headers } of seen) {
    assert.equal(new URL(url).searchParams.get('omit'), 'input,output');
    assert.equal(new URL(url).pathname, '/traces/batch');
    assert.equal(method, 'POST');
    assert.equal(headers.get('content-encoding'), 'gzip');
  }
  assert.equal(new Set(seen.map(({ headers }) => headers.get('idempotency-key'))).size, 3);
  assert.deepEqual(
    await storedInputs(reader),
    numbered(250).map(({ input }) => input),
  );
  assert.equal((await reader.analytics.overview()).total_cost_usd, 0.25);
  const none = { queued: 0, dropped: 0, rejected: 0, failed: 0, retries: 0 };
  assert.deepEqual(client.stats(), { ...none, sent: 250 });
  assert.deepEqual(errors, []);
});

test('a full batch is sent at once, without waiting for the interval', async () => {
  const { client, seen } = await scriptedClient(server, [], {
    maxBatchTraces: 10,
    flushIntervalMs: 60_000,
  });
  for (const trace of numbered(15)) client.enqueue(trace);
  await until('a batch is sent', () => client.stats().sent >= 10);
  assert.equal(seen.length, 1);
  assert.equal(client.stats().queued, 5);
  await client.close();
  assert.equal(client.stats().sent, 15);
});

test('a partial batch is sent when its first trace has waited for the interval', async (t) => {
  const { client, seen } = await scriptedClient(server, [], { flushIntervalMs: 1_500 });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  client.enqueue({ model: 'm' });
  t.mock.timers.tick(1_400);
  client.enqueue({ model: 'm' });
  t.mock.timers.tick(99);
  // A request would have begun by now.
  await sleep(50);
  assert.equal(seen.length, 0);
  t.mock.timers.tick(1);
  await until('both are sent', () => client.stats().sent >= 2);
  assert.equal(seen.length, 1);
});

test('batches are bounded in bytes, and a trace that is larger than a batch is sent alone', async () => {
  const { client, seen, reader } = await scriptedClient(server, [], { maxBatchBytes: 10_000 });
  const inputs = [3_000, 3_000, 3_000, 3_000, 50_000, 10].map((length) => 'ü'.repeat(length / 2));
  for (const input of inputs) client.enqueue({ model: 'm', input });
  await client.flush();
  const sizes = await Promise.all(seen.map(async (request) => (await tracesIn(request)).length));
  assert.deepEqual(sizes, [3, 1, 1, 1]);
  assert.deepEqual(await storedInputs(reader), inputs);
});

test('a batch that is full in bytes is sent at once', async () => {
  const { client } = await scriptedClient(server, [], {
    maxBatchBytes: 1_000,
    flushIntervalMs: 60_000,
  });
  client.enqueue({ model: 'm', input: 'x'.repeat(1_000) });
  await until('it is sent', () => client.stats().sent >= 1);
});

test('later changes of an enqueued object have no effect', async () => {
  const { client, reader } = await scriptedClient(server);
  const trace: TraceInput = { model: 'm', input: 'before' };
  client.enqueue(trace);
  trace.input = 'after';
  trace.model = '';
  await client.flush();
  assert.deepEqual(await storedInputs(reader), ['before']);
});

test('a trace that cannot be converted to JSON is reported and counted, and does not affect others', async () => {
  const { client, errors, reader } = await scriptedClient(server);
  const cyclic: Record<string, unknown> = { model: 'm', input: 'my secret prompt' };
  cyclic.self = cyclic;
  const hostile = {
    get model(): string {
      throw new Error('my secret prompt');
    },
  };
  const bad: unknown[] = [cyclic, hostile, { model: 1n }, undefined, null, 7, () => 1, Symbol('s')];
  client.enqueue({ model: 'm', input: 'good' });
  for (const value of bad) client.enqueue(value as TraceInput);
  await client.flush();
  assert.deepEqual(await storedInputs(reader), ['good']);
  assert.equal(client.stats().rejected, bad.length);
  assert.deepEqual(
    errors.map(({ code }) => code),
    bad.map(() => 'not_serialisable'),
  );
  for (const { message } of errors) assert.ok(!message.includes('secret'), message);
});

test('a batch keeps its idempotency key and its bytes over all retries, and is stored once', async () => {
  const failures: Step[] = [
    'lose-reply',
    problem(503, 'queue_full', { 'retry-after': '0' }),
    new TypeError('fetch failed'),
    new Response('', { status: 502 }),
    new Response('{"hello":"I am a captive portal"}', { status: 200 }),
    'lose-reply',
  ];
  const { client, seen, reader, errors } = await scriptedClient(server, failures, {
    maxRetries: 50,
  });
  for (const trace of numbered(20)) client.enqueue(trace);
  await client.flush();
  assert.equal(seen.length, failures.length + 1);
  assert.equal(new Set(seen.map(({ headers }) => headers.get('idempotency-key'))).size, 1);
  assert.equal(new Set(seen.map(({ body }) => Buffer.from(body).toString('hex'))).size, 1);
  assert.deepEqual(
    await storedInputs(reader),
    numbered(20).map(({ input }) => input),
  );
  assert.equal(client.stats().retries, failures.length);
  assert.equal(client.stats().sent, 20);
  assert.deepEqual(errors, []);
});

test('a batch waits as long as Retry-After says', async () => {
  const { client, seen } = await scriptedClient(server, [
    problem(503, 'queue_full', { 'retry-after': '1' }),
  ]);
  client.enqueue({ model: 'm' });
  await client.flush();
  assert.ok((seen[1]?.atMs ?? 0) - (seen[0]?.atMs ?? 0) >= 995);
});

test('one batch is in flight at a time, or as many as maxConcurrentBatches', async () => {
  for (const most of [1, 3]) {
    let now = 0;
    let peak = 0;
    const { client, seen } = await scriptedClient(
      server,
      async (): Promise<Step> => {
        peak = Math.max(peak, ++now);
        await until(`${most} batches are in flight`, () => peak >= most);
        // One too many would begin about now.
        await sleep(20);
        now -= 1;
        return 'pass';
      },
      { maxBatchTraces: 1, maxConcurrentBatches: most },
    );
    for (const trace of numbered(6)) client.enqueue(trace);
    await client.flush();
    assert.equal(peak, most);
    assert.equal(seen.length, 6);
    assert.equal(client.stats().sent, 6);
  }
});

test('the queue is bounded in traces: drops are counted, and the first of each episode is reported', async () => {
  let open: (step: Step) => void = () => {};
  const gate = new Promise<Step>((resolve) => (open = resolve));
  const { client, errors, reader, seen } = await scriptedClient(server, () => gate, {
    maxQueueTraces: 10,
    maxBatchTraces: 2,
  });
  for (const trace of numbered(15)) client.enqueue(trace);
  assert.deepEqual([client.stats().queued, client.stats().dropped], [10, 5]);
  await until('a batch is in flight', () => seen.length > 0);
  // Traces in flight count as well: they are still in memory.
  client.enqueue({ model: 'm' });
  assert.equal(client.stats().dropped, 6);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['queue_overflow'],
  );
  open('pass');
  await client.flush();
  assert.deepEqual(
    await storedInputs(reader),
    numbered(10).map(({ input }) => input),
  );
  for (const trace of numbered(11)) client.enqueue(trace);
  assert.equal(errors.length, 2, 'a new episode is reported again');
  await client.flush();
  assert.deepEqual([client.stats().sent, client.stats().dropped], [20, 7]);
});

test('the queue is bounded in bytes', async () => {
  const { client, errors } = await scriptedClient(server, [], { maxQueueBytes: 5_000 });
  for (let at = 0; at < 4; at++) client.enqueue({ model: 'm', input: 'x'.repeat(2_000) });
  assert.deepEqual([client.stats().queued, client.stats().dropped], [2, 2]);
  assert.equal(errors.length, 1);
  await client.flush();
  assert.equal(client.stats().sent, 2);
});

test('errors of onError do not reach the caller', async () => {
  for (const onError of [
    (): never => assert.fail('thrown by the hook'),
    () => Promise.reject(new Error('rejected by the hook')),
  ]) {
    const apiKey = await server.freshKey();
    const client = new TraceTally({ apiKey, baseUrl: server.url, onError });
    client.enqueue(undefined as unknown as TraceInput);
    client.enqueue({ model: '' });
    await client.flush();
    assert.equal(client.stats().rejected, 2);
  }
  // An unhandled rejection of the hook would fail the test in the next turn of the event loop.
  await setImmediate();
});

test('without onError, losses are printed as warnings', async (t) => {
  const warn = t.mock.method(console, 'warn', () => {});
  const client = new TraceTally({ apiKey: await server.freshKey(), baseUrl: server.url });
  client.enqueue({ model: '', input: 'my secret prompt' });
  await client.flush();
  const lines = warn.mock.calls.map(({ arguments: [line] }) => String(line));
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /^TraceTally: .*model/);
  assert.ok(!lines[0]?.includes('secret'));
});
