/**
 * Tests the built client with the JavaScript runtime that runs this file and a running server:
 * `node smoke.mjs URL API_KEY`. Exits with a code other than 0 if anything is wrong.
 */
import assert from 'node:assert/strict';
import { TraceTally, TraceTallyError } from '../../dist/index.js';

const [baseUrl, apiKey] = process.argv.slice(2);
const errors = [];
const options = { baseUrl, apiKey, closeTimeoutMs: 120_000, requestTimeoutMs: 120_000 };
const client = new TraceTally({ ...options, onError: (error) => errors.push(error) });

const recorded = await client.record({
  model: 'smoke',
  input: 'Grüße \u{1F600}',
  output: 'x'.repeat(5_000),
  cost_usd: 0.5,
  latency_ms: 10,
  feature_name: 'chat',
});
assert.equal(recorded.input, 'Grüße \u{1F600}');
assert.deepEqual(await client.traces.get(recorded.id), recorded);

for (let at = 0; at < 250; at++) {
  client.enqueue({ model: 'smoke', input: `t${at}`, cost_usd: 0.002 });
}
client.enqueue({ model: '' });
client.enqueue({ model: 1n });
await client.flush();
const { sent, rejected, queued, dropped, failed } = client.stats();
assert.deepEqual([sent, rejected, queued, dropped, failed], [250, 2, 0, 0, 0]);
assert.deepEqual(
  errors.map(({ code }) => code),
  ['not_serialisable', 'traces_rejected'],
);

const page = await client.traces.list({ limit: 3, omit: ['output'] });
assert.deepEqual([page.total, page.limit], [251, 3]);
assert.deepEqual(
  page.traces.map(({ input }) => input),
  ['t249', 't248', 't247'],
);
const ids = new Set();
for await (const { id } of client.traces.all({ limit: 50, omit: ['input', 'output'] })) ids.add(id);
assert.equal(ids.size, 251);

const overview = await client.analytics.overview();
assert.deepEqual([overview.total_calls, overview.total_cost_usd], [251, 1]);
assert.equal((await client.analytics.byModel())[0].model, 'smoke');
assert.equal((await client.analytics.byFeature())[0].call_count, 1);
assert.equal((await client.analytics.daily()).length, 7);

await assert.rejects(
  client.traces.get('none'),
  (error) => error instanceof TraceTallyError && error.code === 'trace_not_found',
);
const measured = await client.measure({ model: 'smoke', feature: 'measured' }, async () => 'done');
assert.equal(measured, 'done');
await client.close();
assert.equal((await client.analytics.overview()).total_calls, 252);

// The last one is sent when the process ends; the test that started this program counts 253.
new TraceTally({ ...options, flushIntervalMs: 60_000 }).enqueue({ model: 'last' });
process.stdout.write(`fine on ${process.version}\n`);
