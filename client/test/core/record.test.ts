import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { TraceTally, TraceTallyError } from '../../src/index.ts';
import type { TraceInput } from '../../src/index.ts';
import { recorded, scriptedClient } from '../support/scripted-client.ts';
import { problem } from '../support/scripted-fetch.ts';
import type { Step } from '../support/scripted-fetch.ts';
import { startServer, unusedUrl } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { until } from '../support/until.ts';

let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

async function failureOf(promise: Promise<unknown>): Promise<TraceTallyError> {
  const error: unknown = await promise.then(
    () => assert.fail('it did not fail'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof TraceTallyError, String(error));
  return error;
}

test('record returns the trace as stored, and the next read returns the same', async () => {
  const { client } = await scriptedClient(server, []);
  const trace: TraceInput = {
    model: 'gpt-4o',
    input: 'Grüße \u{1F600}\u0000',
    prompt_tokens: 9,
    cost_usd: 0.0015,
    feature_name: undefined,
  };
  const stored = await recorded(client, trace);
  assert.equal(stored.input, trace.input);
  assert.equal(stored.status, 'success');
  assert.equal(stored.feature_name, null);
  assert.deepEqual(await client.traces.get(stored.id), stored);
  assert.equal((await client.analytics.overview()).total_cost_usd, 0.0015);
});

test('temporary failures are retried with one idempotency key, and the trace is stored once', async () => {
  const failures: Step[] = [
    new TypeError('fetch failed'),
    problem(408, 'request_timeout'),
    problem(429, 'rate_limited', { 'retry-after': '0' }),
    problem(500, 'internal'),
    new Response('<html>bad gateway</html>', { status: 502 }),
    problem(503, 'queue_full'),
    problem(504, 'gateway'),
    problem(507, 'disk_full'),
    new Response('{"id":"cut off', { status: 201 }),
    'lose-reply',
    'lose-reply',
  ];
  const { client, seen } = await scriptedClient(server, failures, { maxRetries: failures.length });
  const stored = await recorded(client, { model: 'm', input: 'once' });
  assert.equal(seen.length, failures.length + 1);
  const keys = new Set(seen.map(({ headers }) => headers.get('idempotency-key')));
  assert.equal(keys.size, 1);
  assert.match([...keys][0] ?? '', /^[\x21-\x7e]{16,255}$/);
  const page = await client.traces.list();
  assert.deepEqual([page.total, page.traces[0]?.id], [1, stored.id]);
});

test('each record has its own idempotency key, unless the caller gives one', async () => {
  const { client, seen } = await scriptedClient(server, []);
  const trace = { model: 'm', input: 'same' };
  await client.record(trace);
  await client.record(trace);
  assert.notEqual(seen[0]?.headers.get('idempotency-key'), seen[1]?.headers.get('idempotency-key'));
  assert.equal((await client.traces.list()).total, 2);
  const first = await recorded(client, trace, { idempotencyKey: 'import-7' });
  const second = await recorded(client, trace, { idempotencyKey: 'import-7' });
  assert.equal(second.id, first.id);
  assert.equal((await client.traces.list()).total, 3);
});

test('a trace that the server rejects is an error at once, with every detail of the reply', async () => {
  const { client, seen } = await scriptedClient(server, []);
  const wrong = {
    model: 'm',
    latency_ms: '12',
    input: 'my secret prompt',
  } as unknown as TraceInput;
  const error = await failureOf(client.record(wrong));
  assert.equal(seen.length, 1);
  assert.equal(error.status, 422);
  assert.equal(error.code, 'invalid_input');
  assert.deepEqual(
    error.errors.map(({ field }) => field),
    ['latency_ms'],
  );
  assert.match(error.message, /invalid_input.*latency_ms/);
  assert.ok(error.requestId !== null && error.requestId !== '');
  assert.ok(!JSON.stringify(error).includes('secret') && !error.message.includes('secret'));
});

test('an unknown API key is an error without retries', async () => {
  const { client, seen } = await scriptedClient(server, [], { apiKey: 'tt_unknown_key' });
  const error = await failureOf(client.record({ model: 'm' }));
  assert.deepEqual([error.status, error.code, seen.length], [401, 'key_unknown', 1]);
});

test('record throws the last failure after its retries', async () => {
  const { client, seen } = await scriptedClient(
    server,
    Array<Step>(9).fill(problem(503, 'queue_full')),
    {
      maxRetries: 2,
    },
  );
  const error = await failureOf(client.record({ model: 'm' }));
  assert.deepEqual([error.status, error.code, seen.length], [503, 'queue_full', 3]);
});

test('record waits as long as Retry-After says, in seconds or until a date', async () => {
  let date = '';
  const { client, seen } = await scriptedClient(
    server,
    (_request, index) => {
      if (index === 0) return problem(503, 'queue_full', { 'retry-after': '1' });
      if (index > 1) return 'pass';
      // A date has whole seconds, so it is between one second and two away.
      date = new Date(Date.now() + 2_000).toUTCString();
      return problem(429, 'rate_limited', { 'retry-after': date });
    },
    { retryDelayMaxMs: 600_000 },
  );
  await client.record({ model: 'm' });
  assert.equal(seen.length, 3);
  assert.ok((seen[1]?.atMs ?? 0) - (seen[0]?.atMs ?? 0) >= 995, 'one second');
  // Timers and the clock may differ by a few milliseconds.
  const earlyMs = Date.parse(date) - Date.now();
  assert.ok(earlyMs <= 5, `${earlyMs} ms before the date`);
});

test('a request times out even if fetch ignores its signal', async () => {
  const { client, seen } = await scriptedClient(server, ['hang', 'hang', 'hang'], {
    requestTimeoutMs: 50,
    maxRetries: 1,
  });
  const error = await failureOf(client.record({ model: 'm' }));
  assert.deepEqual([error.status, error.code, seen.length], [null, 'no_reply', 2]);
});

test('a URL at which nothing listens is a network error with the reason', async () => {
  const client = new TraceTally({ apiKey: 'k', baseUrl: await unusedUrl(), maxRetries: 0 });
  const error = await failureOf(client.record({ model: 'm' }));
  assert.deepEqual([error.status, error.code], [null, 'network_error']);
  assert.match(error.message, /ECONNREFUSED/);
});

test('a redirect is an error and is not followed', async () => {
  const redirect = new Response(null, { status: 302, headers: { location: '/elsewhere' } });
  const { client, seen } = await scriptedClient(server, [redirect]);
  const error = await failureOf(client.record({ model: 'm' }));
  assert.deepEqual([error.code, seen.length], ['redirected', 1]);
  assert.match(error.message, /\/elsewhere.*baseUrl/);
});

test('a trace that cannot be converted to JSON is an error before anything is sent', async () => {
  const { client, seen } = await scriptedClient(server, []);
  const cyclic: Record<string, unknown> = { model: 'm' };
  cyclic.self = cyclic;
  for (const value of [cyclic, { model: 1n }, null, undefined, 'text', []]) {
    const error = await failureOf(client.record(value as unknown as TraceInput));
    assert.equal(error.code, 'not_serialisable');
  }
  assert.equal(seen.length, 0);
});

test('a call can be aborted during a request and between two attempts', async () => {
  const { client } = await scriptedClient(server, ['hang'], { requestTimeoutMs: 5_000 });
  const error = await failureOf(client.record({ model: 'm' }, { signal: AbortSignal.timeout(20) }));
  assert.equal(error.code, 'aborted');
  const waits = problem(503, 'queue_full', { 'retry-after': '600' });
  const { client: other, seen } = await scriptedClient(server, [waits], {
    retryDelayMaxMs: 900_000,
  });
  const abort = new AbortController();
  const second = failureOf(other.record({ model: 'm' }, { signal: abort.signal }));
  await until('the first attempt', () => seen.length === 1);
  await sleep(50);
  abort.abort();
  assert.deepEqual([(await second).code, seen.length], ['aborted', 1]);
});

test('bodies over 1 KiB are compressed, unless gzip is false', async () => {
  const { client, seen } = await scriptedClient(server, []);
  const long = { model: 'm', input: 'ä'.repeat(50_000) };
  const stored = await recorded(client, long);
  assert.equal(stored.input, long.input);
  await client.record({ model: 'm', input: 'short' });
  assert.equal(seen[0]?.headers.get('content-encoding'), 'gzip');
  assert.ok((seen[0]?.body.length ?? 0) < 5_000);
  assert.equal(seen[1]?.headers.get('content-encoding'), null);
  const plain = await scriptedClient(server, [], { gzip: false });
  await plain.client.record(long);
  assert.equal(plain.seen[0]?.headers.get('content-encoding'), null);
});
