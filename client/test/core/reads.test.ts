import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TraceTallyError } from '../../src/index.ts';
import type { ListedTrace, TraceTally } from '../../src/index.ts';
import { recorded, scriptedClient } from '../support/scripted-client.ts';
import { problem } from '../support/scripted-fetch.ts';
import type { Step } from '../support/scripted-fetch.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';

let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

async function fill(client: TraceTally, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at++) client.enqueue({ model: 'm', input: `t${at}` });
  await client.flush();
}

const newestFirst = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `t${count - 1 - index}`);

test('list returns pages, totals and, on request, traces without payloads', async () => {
  const { client } = await scriptedClient(server);
  await fill(client, 0, 25);
  const page = await client.traces.list({ page: 2, limit: 10 });
  assert.deepEqual([page.total, page.page, page.limit], [25, 2, 10]);
  assert.deepEqual(
    page.traces.map(({ input }) => input),
    newestFirst(25).slice(10, 20),
  );
  assert.equal((await client.traces.list()).limit, 20);
  const lean = await client.traces.list({ limit: 1, omit: ['input', 'output'] });
  assert.ok(!('input' in (lean.traces[0] ?? {})) && !('output' in (lean.traces[0] ?? {})));
  const bare = await client.traces.list({ limit: 1, omit: ['error_message', 'output', 'input'] });
  assert.deepEqual(
    ['input', 'output', 'error_message'].filter((name) => name in (bare.traces[0] ?? {})),
    [],
  );
  const half = await client.traces.list({ limit: 1, omit: ['output'] });
  assert.deepEqual([half.traces[0]?.input, 'output' in (half.traces[0] ?? {})], ['t24', false]);
  const cut = await client.traces.list({ limit: 1, previewChars: 2 });
  assert.equal(cut.traces[0]?.input, 't2');
});

test('get returns one trace and cost explains its cost, and both fail with 404 if there is none', async () => {
  const { client } = await scriptedClient(server);
  const stored = await recorded(client, { model: 'gpt-4o', input: 'i', prompt_tokens: 1_000 });
  assert.deepEqual(await client.traces.get(stored.id), stored);
  const { cost_usd, reason, price, parts, computed_usd } = await client.traces.cost(stored.id);
  assert.deepEqual([cost_usd, reason, computed_usd], [0.0025, null, 0.0025]);
  assert.deepEqual([price?.source, parts[0]?.kind, parts[0]?.usd], ['list', 'input', 0.0025]);
  for (const id of ['00000000-0000-7000-8000-000000000000', 'a/../b?c=d', '', '.', '..']) {
    for (const read of [() => client.traces.get(id), () => client.traces.cost(id)]) {
      await assert.rejects(
        read,
        (error: TraceTallyError) => error instanceof TraceTallyError && error.status === 404,
        id,
      );
    }
  }
});

test('the analytics methods return what the server reports', async () => {
  const { client } = await scriptedClient(server);
  await client.record({ model: 'a', feature_name: 'chat', cost_usd: 0.25, latency_ms: 10 });
  await client.record({ model: 'b', cost_usd: 0.5, latency_ms: 20, error_message: 'x' });
  const overview = await client.analytics.overview();
  assert.deepEqual(overview, {
    total_calls: 2,
    avg_latency_ms: 15,
    total_cost_usd: 0.75,
    success_rate: 50,
    error_count: 1,
  });
  const models = await client.analytics.byModel();
  assert.deepEqual(
    models.map(({ model }) => model),
    ['a', 'b'],
  );
  const features = await client.analytics.byFeature();
  assert.deepEqual(
    features.map(({ feature_name, total_cost_usd }) => [feature_name, total_cost_usd]),
    [['chat', 0.25]],
  );
  const daily = await client.analytics.daily();
  assert.deepEqual([daily.length, daily.at(-1)?.call_count], [7, 2]);
});

test('a limit returns the first records of a breakdown, and an invalid limit is an error', async () => {
  const { client } = await scriptedClient(server);
  for (const name of ['a', 'b', 'b']) await client.record({ model: name, feature_name: name });
  assert.deepEqual(
    (await client.analytics.byModel({ limit: 1 })).map(({ model }) => model),
    ['b'],
  );
  assert.deepEqual(
    (await client.analytics.byFeature({ limit: 1 })).map(({ feature_name }) => feature_name),
    ['b'],
  );
  assert.equal((await client.analytics.byModel({ limit: 1_000 })).length, 2);
  for (const limit of [0, 1_001, 1.5, Number.NaN]) {
    await assert.rejects(
      client.analytics.byModel({ limit }),
      (error: TraceTallyError) => error.status === 422 && error.errors[0]?.field === 'limit',
    );
  }
});

test('reads are retried like writes, and permanent failures are thrown at once', async () => {
  const { client, seen } = await scriptedClient(server, [
    problem(503, 'store_unavailable', { 'retry-after': '0' }),
    new TypeError('fetch failed'),
    'lose-reply',
  ]);
  assert.equal((await client.analytics.overview()).total_calls, 0);
  assert.equal(seen.length, 4);
  await assert.rejects(
    client.traces.list({ limit: 0 }),
    (error: TraceTallyError) => error.status === 422 && error.errors[0]?.field === 'limit',
  );
  assert.equal(seen.length, 5);
});

test('a read can be aborted', async () => {
  const { client } = await scriptedClient(server, ['hang']);
  await assert.rejects(
    client.traces.list({ signal: AbortSignal.timeout(20) }),
    (error: TraceTallyError) => error.code === 'aborted',
  );
});

test('all yields every trace once, newest first, at any page size', async () => {
  const { client, seen, reader } = await scriptedClient(server);
  await fill(client, 0, 230);
  const cases: [number | undefined, number][] = [
    [undefined, 3],
    [100, 3],
    [230, 3],
    [46, 5],
    [7, 33],
    [1_000, 3],
  ];
  for (const [limit, requests] of cases) {
    seen.length = 0;
    const inputs: unknown[] = [];
    for await (const { input } of client.traces.all({ limit })) inputs.push(input);
    assert.deepEqual(inputs, newestFirst(230), `limit ${limit}`);
    assert.equal(seen.length, requests, `limit ${limit}`);
  }
  for await (const trace of reader.traces.all({ omit: ['input', 'output'] })) {
    assert.ok(!('input' in trace));
    break;
  }
});

test('all yields nothing for a new team', async () => {
  const { client } = await scriptedClient(server);
  for await (const trace of client.traces.all()) assert.fail(trace.id);
});

test('all neither skips nor repeats traces while any number of new ones arrive between pages', async () => {
  // What arrives before each page: less than a page, exactly one, several pages, nothing, and more than was there at all.
  const arrivals = [0, 3, 10, 25, 0, 0, 100, 1, 9, 11, 0, 20, 20, 20, 0, 7];
  const { reader: writer, client } = await scriptedClient(
    server,
    async (_request, index): Promise<Step> => {
      await arrive(arrivals[index] ?? 0);
      return 'pass';
    },
  );
  let next = 0;
  async function arrive(count: number): Promise<void> {
    for (const end = next + count; next < end; next++) {
      writer.enqueue({ model: 'm', input: `t${next}` });
    }
    await writer.flush();
  }
  await arrive(64);
  const inputs: unknown[] = [];
  for await (const { input } of client.traces.all({ limit: 10 })) inputs.push(input);
  assert.deepEqual(inputs, newestFirst(64));
  assert.ok(next > 200, `${next} were there in the end`);
});

test('all does not repeat traces if old ones were removed and as many new ones arrived', async () => {
  const stored = await recorded((await scriptedClient(server)).client, { model: 'm' });
  const pageOf = (newest: number, count: number) => {
    const traces = Array.from({ length: count }, (_, at) => ({
      ...stored,
      id: `id-${newest - at}`,
    }));
    return new Response(JSON.stringify({ traces, total: 30, page: 0, limit: 10 }));
  };
  const { client } = await scriptedClient(server, [pageOf(29, 10), pageOf(22, 10), pageOf(12, 10)]);
  const ids: string[] = [];
  for await (const { id } of client.traces.all({ limit: 10 })) ids.push(id);
  assert.deepEqual(
    ids,
    Array.from({ length: 27 }, (_, at) => `id-${29 - at}`),
  );
});

test('all ends even if more traces arrive per page than a page holds', async () => {
  let next = 0;
  const {
    reader: writer,
    client,
    seen,
  } = await scriptedClient(server, async (): Promise<Step> => {
    await arrive(35);
    return 'pass';
  });
  async function arrive(count: number): Promise<void> {
    for (const end = next + count; next < end; next++) {
      writer.enqueue({ model: 'm', input: `t${next}` });
    }
    await writer.flush();
  }
  await arrive(50);
  const found: ListedTrace[] = [];
  for await (const trace of client.traces.all({ limit: 10 })) found.push(trace);
  assert.equal(found.length, 85, 'those that were there when the first page was read');
  assert.deepEqual(
    found.map(({ input }) => input),
    newestFirst(85),
  );
  assert.ok(seen.length < 40, `${seen.length} requests`);
});
