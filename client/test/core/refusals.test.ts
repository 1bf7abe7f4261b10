import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TraceInput } from '../../src/index.ts';
import { problem, tracesIn } from '../support/scripted-fetch.ts';
import type { Step } from '../support/scripted-fetch.ts';
import { scriptedClient, storedInputs } from '../support/scripted-client.ts';
import { startServer, unusedUrl } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { until } from '../support/until.ts';

let server: LiveServer;
before(async () => {
  server = await startServer(['--body-limit', '100000']);
});
after(() => server.stop());

const invalid = { model: 'm', latency_ms: 1.5, input: 'my secret prompt' } as TraceInput;

test('rejected traces are reported with their index and errors, never with their text', async () => {
  const { client, errors, reader } = await scriptedClient(server);
  client.enqueue({ model: 'm', input: 'a' });
  client.enqueue(invalid);
  client.enqueue({ model: 'm', input: 'b' });
  client.enqueue({ ...invalid, model: '' });
  await client.flush();
  assert.deepEqual(await storedInputs(reader), ['a', 'b']);
  const { sent, rejected, failed } = client.stats();
  assert.deepEqual([sent, rejected, failed], [2, 2, 0]);
  assert.equal(errors.length, 1);
  assert.equal(errors[0]?.code, 'traces_rejected');
  const fields = errors[0]?.errors.map(({ field }) => field).sort();
  assert.deepEqual(fields, ['traces.1.latency_ms', 'traces.3.latency_ms', 'traces.3.model']);
  assert.match(errors[0]?.message ?? '', /2 traces/);
  assert.ok(!JSON.stringify(errors).includes('secret') && !errors[0]?.message.includes('secret'));
});

test('a batch without any valid trace is rejected, reported once and not retried', async () => {
  const { client, seen, errors } = await scriptedClient(server);
  client.enqueue(invalid);
  client.enqueue(invalid);
  await client.flush();
  assert.equal(seen.length, 1);
  assert.deepEqual([client.stats().rejected, client.stats().failed], [2, 0]);
  assert.deepEqual(
    errors.map(({ status, code }) => [status, code]),
    [[422, 'invalid_input']],
  );
  assert.deepEqual(
    errors[0]?.errors.map(({ field }) => field),
    ['traces.0.latency_ms', 'traces.1.latency_ms'],
  );
});

test('a batch that is too large is halved until it fits, each half with its own idempotency key', async () => {
  const tooLargeFor = (most: number) => async (request: Parameters<typeof tracesIn>[0]) =>
    (await tracesIn(request)).length > most ? problem(413, 'body_too_large') : 'pass';
  const { client, seen, reader, errors } = await scriptedClient(server, tooLargeFor(3));
  const inputs = Array.from({ length: 10 }, (_, index) => `t${index}`);
  for (const input of inputs) client.enqueue({ model: 'm', input });
  await client.flush();
  const sizes = await Promise.all(seen.map(async (request) => (await tracesIn(request)).length));
  assert.deepEqual(sizes, [10, 5, 3, 2, 5, 3, 2]);
  assert.equal(new Set(seen.map(({ headers }) => headers.get('idempotency-key'))).size, 7);
  assert.deepEqual(await storedInputs(reader), inputs);
  assert.equal(client.stats().sent, 10);
  assert.deepEqual(errors, []);
});

test('a trace that is too large is rejected, and the others of its batch are stored', async () => {
  const { client, errors, reader } = await scriptedClient(server, async (request) =>
    (await tracesIn(request)).some(({ input }) => input === 'large')
      ? problem(413, 'body_too_large')
      : 'pass',
  );
  for (const input of ['a', 'b', 'large', 'c']) client.enqueue({ model: 'm', input });
  await client.flush();
  assert.deepEqual(await storedInputs(reader), ['a', 'b', 'c']);
  assert.deepEqual([client.stats().sent, client.stats().rejected], [3, 1]);
  assert.deepEqual(
    errors.map(({ status, code }) => [status, code]),
    [[413, 'body_too_large']],
  );
});

test('a trace over the body limit of the server is rejected, and the others of its batch are stored', async () => {
  const { client, errors, reader } = await scriptedClient(server);
  const large = 'my secret prompt'.repeat(10_000);
  for (const input of ['a', large, 'b']) client.enqueue({ model: 'm', input });
  await client.flush();
  assert.deepEqual(await storedInputs(reader), ['a', 'b']);
  assert.deepEqual([client.stats().sent, client.stats().rejected], [2, 1]);
  assert.equal(errors.length, 1);
  assert.ok(!errors[0]?.message.includes('secret'));
});

test('an API key that is not accepted is reported, and its traces fail without retries', async () => {
  const reading = await server.freshKey('read');
  const cases = [
    { apiKey: 'tt_key_that_does_not_exist', status: 401, code: 'key_unknown' },
    { apiKey: reading, status: 403, code: 'scope_missing' },
  ];
  for (const { apiKey, status, code } of cases) {
    const { client, seen, errors } = await scriptedClient(server, [], { apiKey });
    client.enqueue({ model: 'm' });
    client.enqueue({ model: 'm' });
    await client.flush();
    assert.equal(seen.length, 1);
    assert.deepEqual([client.stats().failed, client.stats().rejected], [2, 0]);
    assert.deepEqual([errors.length, errors[0]?.status, errors[0]?.code], [1, status, code]);
    assert.match(errors[0]?.message ?? '', /Gave up on 2 traces/);
    assert.ok(!errors[0]?.message.includes(apiKey));
  }
});

test('an outage is reported once while it lasts, and the client gives up on a batch at its maximum age', async (t) => {
  const { client, errors } = await scriptedClient(server, [], {
    baseUrl: await unusedUrl(),
    maxRetries: 2,
    maxRetryAgeMs: 400,
  });
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  for (let at = 0; at < 3; at++) client.enqueue({ model: 'm' });
  const flushed = client.flush();
  // No delay is longer than 100 ms.
  for (let retry = 1; retry <= 4; retry++) {
    await until(`retry ${retry}`, () => client.stats().retries === retry);
    assert.equal(client.stats().failed, 0, `at ${100 * (retry - 1)} ms`);
    t.mock.timers.tick(100);
  }
  await flushed;
  assert.deepEqual([client.stats().failed, client.stats().queued], [3, 0]);
  assert.equal(client.stats().retries, 4);
  assert.equal(errors.length, 2);
  assert.match(errors[0]?.message ?? '', /network_error: Cannot send 3 traces; retrying/);
  assert.match(errors[1]?.message ?? '', /network_error: Gave up on 3 traces/);
});

test('a batch that causes a 500 is retried a few times, and the next batch gets through', async () => {
  const broken: Step[] = Array<Step>(3).fill(problem(500, 'internal'));
  const { client, seen, errors, reader } = await scriptedClient(server, broken, {
    maxRetries: 2,
    maxBatchTraces: 1,
  });
  client.enqueue({ model: 'm', input: 'poison' });
  client.enqueue({ model: 'm', input: 'fine' });
  await client.flush();
  assert.equal(seen.length, 4);
  assert.deepEqual(await storedInputs(reader), ['fine']);
  assert.deepEqual([client.stats().sent, client.stats().failed], [1, 1]);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['internal'],
  );
});

test('stats count every trace exactly once', async () => {
  const script: Step[] = ['pass', problem(401, 'key_revoked'), problem(413, 'body_too_large')];
  const { client } = await scriptedClient(server, script, {
    maxBatchTraces: 2,
    maxQueueTraces: 8,
  });
  for (let at = 0; at < 11; at++) client.enqueue(at % 2 === 0 ? { model: 'm' } : invalid);
  const during = client.stats();
  assert.equal(during.queued + during.dropped, 11);
  await client.close();
  client.enqueue({ model: 'm' });
  assert.deepEqual(client.stats(), {
    queued: 0,
    sent: 3,
    rejected: 3,
    failed: 2,
    dropped: 4,
    retries: 0,
  });
});
