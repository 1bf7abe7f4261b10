import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TraceTally } from '../../src/index.ts';
import type { TraceTallyOptions } from '../../src/index.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { seededRandom } from '../support/random.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { until } from '../support/until.ts';

// To repeat a run, put the seed that it printed here.
const seed = Math.floor(Math.random() * 2 ** 31);
let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const tracesPerBatch = 5;

/** Sends so many batches through a proxy that breaks a third of them, and counts what was stored in the end. */
async function sendThroughFaults(batches: number, options: TraceTallyOptions = {}) {
  const apiKey = await server.freshKey();
  const proxy = await startFaultProxy(server.url, seededRandom(seed));
  const errors: Error[] = [];
  const client = new TraceTally({
    apiKey,
    baseUrl: proxy.url,
    maxBatchTraces: tracesPerBatch,
    maxConcurrentBatches: 8,
    retryDelayMs: 5,
    retryDelayMaxMs: 50,
    maxRetries: 100,
    closeTimeoutMs: 60_000,
    onError: (error) => void errors.push(error),
    ...options,
  });
  const traces = batches * tracesPerBatch;
  for (let at = 0; at < traces; at++) {
    const model = `model-${at % 3}`;
    client.enqueue({ model, input: `unique-${at}`, output: 'word '.repeat(80), cost_usd: 0.001 });
  }
  await client.close();
  await proxy.stop();
  const direct = new TraceTally({ apiKey, baseUrl: server.url });
  const inputs: (string | null | undefined)[] = [];
  for await (const { input } of direct.traces.all({ omit: ['output'] })) inputs.push(input);
  return { stats: client.stats(), counts: proxy.counts, errors, inputs, direct, traces };
}

test('through a network that cuts, delays and duplicates, 1,000 batches are stored exactly once', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const batches = 1_000;
  const { stats, counts, errors, inputs, direct, traces } = await sendThroughFaults(batches);
  t.diagnostic(
    JSON.stringify({ batches, ...counts, retries: stats.retries, stored: inputs.length }),
  );
  assert.deepEqual(errors, []);
  assert.equal(stats.sent, traces);
  assert.deepEqual([stats.queued, stats.dropped, stats.rejected, stats.failed], [0, 0, 0, 0]);
  assert.equal(inputs.length, traces, 'none twice, none more');
  const expected = Array.from({ length: traces }, (_, at) => `unique-${at}`);
  assert.deepEqual(new Set(inputs), new Set(expected), 'none missing');
  const overview = await direct.analytics.overview();
  assert.deepEqual([overview.total_calls, overview.total_cost_usd], [traces, traces / 1_000]);
  const models = await direct.analytics.byModel();
  assert.deepEqual(
    models.map(({ call_count }) => call_count).sort((a, b) => a - b),
    [1_666, 1_667, 1_667],
  );
  for (const [name, count] of Object.entries(counts)) assert.ok(count > 20, `${name}: ${count}`);
});

test('control: with a new idempotency key per attempt, the same network stores traces twice', async () => {
  const { inputs, traces } = await sendThroughFaults(100, {
    fetch: async (url, init) => {
      const headers = new Headers(init?.headers);
      headers.set('idempotency-key', crypto.randomUUID());
      return fetch(url, { ...init, headers });
    },
  });
  assert.ok(inputs.length > traces, `${inputs.length} of ${traces}`);
});

test('if the server is killed repeatedly, no trace of a client is lost or stored twice', async () => {
  const apiKey = await server.freshKey();
  const errors: Error[] = [];
  const client = new TraceTally({
    apiKey,
    baseUrl: server.url,
    maxBatchTraces: 3,
    maxRetries: 100,
    closeTimeoutMs: 60_000,
    retryDelayMs: 20,
    // An outage is reported after the last retry, and a busy machine needs many seconds for a restart.
    retryDelayMaxMs: 500,
    onError: (error) => void errors.push(error),
  });
  let count = 0;
  for (let round = 0; round < 4; round++) {
    for (let at = 0; at < 150; at++) client.enqueue({ model: 'm', input: `unique-${count++}` });
    const before = client.stats().sent;
    await until('30 more traces are sent', () => client.stats().sent >= before + 30);
    await server.crashAndRestart();
  }
  await client.close();
  assert.deepEqual(errors, []);
  assert.equal(client.stats().sent, count);
  assert.ok(client.stats().retries >= 4, `${client.stats().retries} retries`);
  const inputs: unknown[] = [];
  for await (const { input } of client.traces.all()) inputs.push(input);
  const expected = Array.from({ length: count }, (_, at) => `unique-${at}`);
  assert.deepEqual(inputs.reverse(), expected, 'each once, and in order');
});
