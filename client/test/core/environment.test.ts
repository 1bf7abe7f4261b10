import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { TraceTally } from '../../src/index.ts';
import type { TraceInput, TraceTallyOptions } from '../../src/index.ts';
import { readSettings } from '../../src/settings.ts';

const variable = 'TRACETALLY_ENVIRONMENT';
const before = process.env[variable];
beforeEach(() => {
  delete process.env[variable];
});
afterEach(() => {
  if (before === undefined) delete process.env[variable];
  else process.env[variable] = before;
});

/** What every stored trace has, whatever was sent. */
const stored = {
  id: 'i',
  team_id: 't',
  prompt_tokens: null,
  completion_tokens: null,
  latency_ms: null,
  cost_usd: null,
  status: 'success',
  feature_name: null,
  user_identifier: null,
  created_at: '2026-11-04T09:30:00.000000Z',
};

/** The traces that a client with these options sends, for each of these that is enqueued. */
async function sent(options: TraceTallyOptions, traces: readonly unknown[]): Promise<unknown[]> {
  const bodies: string[] = [];
  const fetch: typeof globalThis.fetch = async (_url, request) => {
    const body = new TextDecoder().decode(request?.body as Uint8Array);
    bodies.push(body);
    const received = (JSON.parse(body) as { traces: object[] }).traces;
    const reply = { traces: received.map((trace) => ({ ...stored, ...trace })), rejected: [] };
    return new Response(JSON.stringify(reply), {
      status: 201,
      headers: { 'content-type': 'application/json' },
    });
  };
  const client = new TraceTally({ apiKey: 'k', gzip: false, fetch, onError() {}, ...options });
  for (const trace of traces) client.enqueue(trace as TraceInput);
  await client.close();
  return bodies.flatMap((body) => (JSON.parse(body) as { traces: unknown[] }).traces);
}

test('the environment is added to every trace that has none', async () => {
  const traces = [
    { model: 'a' },
    { model: 'b', environment: null },
    { model: 'c', environment: 'staging' },
    { toJSON: () => ({ model: 'd' }) },
  ];
  assert.deepEqual(await sent({ environment: 'production' }, traces), [
    { model: 'a', environment: 'production' },
    { model: 'b', environment: 'production' },
    { model: 'c', environment: 'staging' },
    { model: 'd', environment: 'production' },
  ]);
});

test('the environment does not bypass the mask', async () => {
  const options = { environment: 'production', mask: () => '***', captureText: false };
  const [trace] = await sent(options, [{ model: 'a', input: 'secret', error_message: 'secret' }]);
  assert.deepEqual(trace, { model: 'a', error_message: '***', environment: 'production' });
});

test('without the option, TRACETALLY_ENVIRONMENT is used, and without either nothing is added', async () => {
  assert.deepEqual(await sent({}, [{ model: 'a' }]), [{ model: 'a' }]);
  process.env[variable] = '';
  assert.equal(readSettings().environment, null);
  process.env[variable] = 'test';
  assert.deepEqual(await sent({}, [{ model: 'a' }]), [{ model: 'a', environment: 'test' }]);
  assert.equal(readSettings({ environment: 'other' }).environment, 'other');
});

test('an invalid environment is an error at construction that names its origin', () => {
  for (const environment of ['a\nb', 'x'.repeat(256), 5, {}]) {
    const options = { apiKey: 'k', environment } as TraceTallyOptions;
    assert.throws(() => new TraceTally(options), /\(option "environment"\) must be a string/);
  }
  process.env[variable] = 'a\u0001b';
  assert.throws(() => readSettings(), /environment variable TRACETALLY_ENVIRONMENT/);
});
