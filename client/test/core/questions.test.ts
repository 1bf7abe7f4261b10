import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { typeFromParameters } from '../../scripts/types-from-schemas.ts';
import { TraceTallyError } from '../../src/index.ts';
import type { TraceTally } from '../../src/index.ts';
import { scriptedClient } from '../support/scripted-client.ts';
import type { ScriptedClient } from '../support/scripted-client.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';

let server: LiveServer;
let client: TraceTally;
let seen: ScriptedClient['seen'];

before(async () => {
  server = await startServer();
  ({ client, seen } = await scriptedClient(server));
  for (let i = 0; i < 12; i++) {
    const isOdd = i % 2 === 1;
    client.enqueue({
      model: isOdd ? 'odd' : 'even',
      input: `question ${i}`,
      cost_usd: (i + 1) / 1_000,
      latency_ms: i * 10,
      environment: 'production',
      provider: 'p & q',
      session_id: `s${i % 3}`,
      started_at: new Date(Date.now() - i * 60_000).toISOString(),
      ...(i < 8 && { user_identifier: `u${i % 4}` }),
      ...(isOdd ? { error_message: 'failed', error_type: 'timeout' } : {}),
      ...(i === 5 && { metadata: { 'tier name': 'gold+' } }),
    });
  }
  await client.flush();
});
after(() => server.stop());

test('every analytics method accepts a filter', async () => {
  const filter = { model: 'odd', last: '2d' };
  const { analytics } = client;
  assert.equal((await analytics.overview({ filter })).total_calls, 6);
  assert.deepEqual(
    (await analytics.byModel({ filter })).map(({ model, call_count }) => [model, call_count]),
    [['odd', 6]],
  );
  assert.deepEqual(await analytics.byFeature({ filter }), []);
  assert.deepEqual(
    (await analytics.byUser({ filter, limit: 1 })).map(({ user_identifier }) => user_identifier),
    ['u1'],
  );
  assert.equal((await analytics.byEnvironment({ filter }))[0]?.environment, 'production');
  assert.equal((await analytics.byProvider({ filter }))[0]?.provider, 'p & q');
  const days = await analytics.daily({ filter });
  assert.deepEqual([days.length, days.reduce((sum, day) => sum + day.call_count, 0)], [2, 6]);
});

test('a filter has one value, several, null for "not set", or metadata', async () => {
  const calls = async (filter: Parameters<typeof client.analytics.overview>[0]) =>
    (await client.analytics.overview(filter)).total_calls;
  assert.equal(await calls({ filter: { user_identifier: ['u0', 'u1'] } }), 4);
  assert.equal(await calls({ filter: { user_identifier: null } }), 4);
  assert.equal(await calls({ filter: { user_identifier: [null, 'u0'], status: 'success' } }), 4);
  assert.equal(await calls({ filter: { provider: 'p & q', model: undefined } }), 12);
  assert.equal(await calls({ filter: { metadata: { 'tier name': ['gold+', 'x'] } } }), 1);
  assert.equal(await calls({ filter: {} }), 12);
  await assert.rejects(calls({ filter: { model: [] } }), TypeError);
  await assert.rejects(
    calls({ filter: { from: 'x' } }),
    (error: TraceTallyError) => error.status === 422 && error.errors[0]?.field === 'from',
  );
});

test('query returns rows, the rest and totals', async () => {
  const reply = await client.analytics.query({
    groupBy: ['model', 'status'],
    order: '-call_count',
    limit: 1,
    filter: { environment: 'production' },
  });
  assert.equal(reply.time_zone, 'UTC');
  assert.deepEqual(
    reply.rows.map(({ model, status, call_count }) => [model, status, call_count]),
    [['even', 'success', 6]],
  );
  assert.deepEqual([reply.other[0]?.call_count, reply.totals.call_count], [6, 12]);
  const daily = await client.analytics.query({
    groupBy: 'model',
    interval: 'day',
    fill: 'zero',
    filter: { last: '7d' },
  });
  assert.equal(daily.rows.length, 14);
  assert.match(daily.rows[0]?.start ?? '', /T00:00:00\+00:00$/);
  assert.equal((await client.analytics.query()).rows.length, 1);
});

test('search yields every trace that matches, page by page', async () => {
  const found: (string | null | undefined)[] = [];
  const before = seen.length;
  for await (const { input } of client.traces.search({ filter: { model: 'even' }, limit: 4 })) {
    found.push(input);
  }
  assert.deepEqual(
    found,
    [10, 8, 6, 4, 2, 0].map((i) => `question ${i}`),
  );
  assert.equal(seen.length - before, 2);
  const ordered: (string | null | undefined)[] = [];
  const filter = { session_id: 's1', order: 'started_at' } as const;
  for await (const { input } of client.traces.search({ filter, limit: 3 })) ordered.push(input);
  assert.deepEqual(
    ordered,
    [10, 7, 4, 1].map((i) => `question ${i}`),
  );
});

test('find returns one page and a cursor', async () => {
  const filter = { q: 'question', min_latency_ms: 50, min_cost_usd: 0.000_000_1 };
  const first = await client.traces.find({ filter, limit: 5, omit: ['output'], previewChars: 3 });
  assert.deepEqual(
    first.traces.map(({ input }) => input),
    Array(5).fill('que'),
  );
  assert.ok(first.next_cursor !== null && first.searched_to !== null);
  const second = await client.traces.find({ filter, cursor: first.next_cursor });
  assert.deepEqual([second.traces.length, second.next_cursor, second.limit], [2, null, 20]);
  await assert.rejects(client.traces.find({ filter: {} }), TypeError);
  await assert.rejects(client.traces.find({ filter: { model: undefined } }), TypeError);
});

test('the generator writes parameters: single ones, those that may be repeated, and names of metadata', () => {
  const text = typeFromParameters('F', 'A filter.', [
    { name: 'from', in: 'query', description: 'The start.', schema: { type: 'string' } },
    { name: 'model', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
    { name: 'status', in: 'query', schema: { type: 'array', items: { enum: ['a', 'b'] } } },
    { name: 'm.NAME', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
  ]);
  assert.equal(
    text,
    [
      '/** A filter. */',
      'export interface F {',
      '/** The start. */',
      'from?: string | undefined;',
      'model?: string | null | readonly (string | null)[] | undefined;',
      "status?: 'a' | 'b' | readonly ('a' | 'b')[] | undefined;",
      'm?: Readonly<Record<string, string | null | readonly (string | null)[]>> | undefined;',
      '}',
      '',
    ].join('\n'),
  );
});
