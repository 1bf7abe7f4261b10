import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { FieldError } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

const itemBytesMax = 2048;
let service: TestService;
/** A service whose single traces are small, so that a batch may hold one that is too large. */
let narrow: TestService;

before(async () => {
  service = await startTestService();
  narrow = await startTestService({ flags: { 'body-limit': String(itemBytesMax) } });
});
after(async () => {
  await service.stop();
  await narrow.stop();
});

interface Stored {
  id: string;
  team_id: string;
  model: string;
  created_at: string;
  [field: string]: unknown;
}

function post(key: string, traces: readonly unknown[], query = ''): Promise<Answer> {
  return service.call(key, 'POST', `/traces/batch${query}`, { traces });
}

async function totalOf(key: string, at = service): Promise<number> {
  return (await at.call(key, 'GET', '/traces?limit=1')).json.total;
}

const named = (count: number, name = 'm'): { model: string }[] =>
  Array.from({ length: count }, (_, i) => ({ model: `${name}${i}` }));
const modelsOf = (traces: readonly Stored[]): string[] => traces.map(({ model }) => model);

/** All of the team's traces, oldest first. */
async function listed(key: string): Promise<Stored[]> {
  const traces: Stored[] = [];
  for (let page = 1; ; page++) {
    const { json } = await service.call(key, 'GET', `/traces?limit=100&page=${page}`);
    traces.push(...json.traces);
    if (json.traces.length < 100) return traces.toReversed();
  }
}

function assertAscending(traces: readonly Stored[]): void {
  for (const [i, { created_at }] of traces.entries()) {
    const earlier = traces[i - 1]?.created_at ?? '';
    assert.ok(created_at > earlier, `${created_at} follows ${earlier}`);
  }
}

test('a batch of 1,000 is stored in order, without a gap, readable and counted', async () => {
  const { key, teamId } = await service.keyFor();
  const traces = named(1000).map((trace, i) => ({
    ...trace,
    input: `question ${i}`,
    cost_usd: 0.000001,
    latency_ms: i,
    feature_name: i % 2 === 0 ? 'even' : 'odd',
    status: i % 10 === 0 ? 'error' : 'success',
  }));
  // Others of the same team write at the same time: they may come before or after, and never between.
  const singles = Array.from({ length: 60 }, () =>
    service.call(key, 'POST', '/traces', { model: 'single' }),
  );
  const batch = await post(key, traces);
  for (const { status } of await Promise.all(singles)) assert.equal(status, 201);

  assert.equal(batch.status, 201, batch.text.slice(0, 300));
  assert.match(batch.headers.get('content-type') ?? '', /^application\/json(;|$)/);
  assert.deepEqual(Object.keys(batch.json), ['traces', 'rejected']);
  assert.deepEqual(batch.json.rejected, []);
  assert.deepEqual(modelsOf(batch.json.traces), modelsOf(named(1000) as Stored[]));
  assert.equal(new Set(batch.json.traces.map(({ id }: Stored) => id)).size, 1000);

  const all = await listed(key);
  assert.equal(all.length, 1060);
  assertAscending(all);
  const first = all.findIndex(({ id }) => id === batch.json.traces[0].id);
  assert.deepEqual(all.slice(first, first + 1000), batch.json.traces);
  for (const trace of [batch.json.traces[0], batch.json.traces[999]]) {
    const { text } = await service.call(key, 'GET', `/traces/${trace.id}`);
    assert.equal(text, JSON.stringify(trace));
  }
  const overview = await service.call(key, 'GET', '/analytics/overview');
  assert.match(
    overview.text,
    /"total_calls":1060,.*"total_cost_usd":0\.001000,.*"error_count":100}/,
  );
  const features = await service.call(key, 'GET', '/analytics/by-feature');
  assert.deepEqual(
    features.json.map((record: { call_count: number }) => record.call_count),
    [500, 500],
  );
  assert.deepEqual(await verifyTeam(service.beside, teamId), { traces: 1060, differences: [] });
});

test('no read ever returns a part of a batch', async () => {
  const { key } = await service.keyFor();
  let isWriting = true;
  let looks = 0;
  const look = async (): Promise<void> => {
    while (isWriting) {
      const [list, overview] = [
        await service.call(key, 'GET', '/traces?limit=1'),
        await service.call(key, 'GET', '/analytics/overview'),
      ];
      assert.deepEqual([list.json.total % 500, overview.json.total_calls % 500], [0, 0]);
      looks += 1;
    }
  };
  const looking = [look(), look()];
  let batches = 0;
  // On a busy machine one round may be over before a read has been answered.
  while (looks < 10) {
    const writes = Array.from({ length: 12 }, () => post(key, named(500)));
    for (const { status } of await Promise.all(writes)) assert.equal(status, 201);
    batches += writes.length;
  }
  isWriting = false;
  await Promise.all(looking);
  assert.equal(await totalOf(key), 500 * batches);
});

test('a batch has 1 to 1,000 traces', async () => {
  const { key } = await service.keyFor();
  assert.deepEqual((await post(key, named(1))).json.traces.length, 1);
  http.assertFieldError(await post(key, []), 'traces', 'must not be empty');
  const tooMany = await post(key, named(1001));
  http.assertFieldError(tooMany, 'traces', 'must have at most 1000 items');
  // Items are not validated if there are too many.
  http.assertFieldError(
    await post(
      key,
      Array.from({ length: 1001 }, () => null),
    ),
    'traces',
  );
  assert.equal(await totalOf(key), 1);
});

test('a body without a list of traces is refused, and the field is named', async () => {
  const { key } = await service.keyFor();
  const rows: [body: string, field: string, message: string][] = [
    ['{}', 'traces', 'is required'],
    ['{"Traces":[{"model":"m"}]}', 'traces', 'is required'],
    ['{"model":"m"}', 'traces', 'is required'],
    ['{"__proto__":{"traces":[{"model":"m"}]}}', 'traces', 'is required'],
    ...['null', '{}', '{"0":{"model":"m"}}', '"m"', '1', 'true'].map(
      (value): [string, string, string] => [`{"traces":${value}}`, 'traces', 'must be an array'],
    ),
    ...['[]', '[{"model":"m"}]', 'null', '"m"', '12', 'true'].map(
      (body): [string, string, string] => [body, 'body', 'must be a JSON object'],
    ),
  ];
  for (const [body, field, message] of rows) {
    const answer = await service.call(key, 'POST', '/traces/batch', body);
    http.assertFieldError(answer, field, message);
  }
  for (const [body, code] of [
    ['', 'malformed_json'],
    ['{"traces":[{"model":"m"}', 'malformed_json'],
    ['{"traces":[{"model":"m"},]}', 'malformed_json'],
  ] as const) {
    http.assertProblem(await service.call(key, 'POST', '/traces/batch', body), code);
  }
  assert.equal(await totalOf(key), 0);
});

const word = 'canaryzqxj';

/** What is wrong, and the error that the caller gets. */
const invalidItems: readonly [item: unknown, errors: readonly FieldError[]][] = [
  [null, [{ field: 'trace', message: 'must be a JSON object' }]],
  [7, [{ field: 'trace', message: 'must be a JSON object' }]],
  [word, [{ field: 'trace', message: 'must be a JSON object' }]],
  [[{ model: word }], [{ field: 'trace', message: 'must be a JSON object' }]],
  [{}, [{ field: 'model', message: 'is required' }]],
  [{ input: word }, [{ field: 'model', message: 'is required' }]],
  [{ model: '' }, [{ field: 'model', message: 'must not be empty' }]],
  [
    { model: word.repeat(30) },
    [{ field: 'model', message: 'must be at most 255 characters long' }],
  ],
  [{ model: `${word}\n` }, [{ field: 'model', message: 'must not contain control characters' }]],
  [
    { model: 'm', latency_ms: word },
    [{ field: 'latency_ms', message: 'must be an integer or null' }],
  ],
  [
    { model: 'm', cost_usd: -1, status: word },
    [
      { field: 'cost_usd', message: 'must be at least 0' },
      { field: 'status', message: 'must be one of "success", "error"' },
    ],
  ],
  [
    { model: 'm', input: { text: word } },
    [{ field: 'input', message: 'must be a string or null' }],
  ],
];

test('an invalid trace is reported by its index, and the others are stored', async () => {
  const { key } = await service.keyFor();
  const items = invalidItems.flatMap(([item], i) => [{ model: `good ${i}` }, item]);
  const answer = await post(key, items);
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(
    modelsOf(answer.json.traces),
    invalidItems.map((_, i) => `good ${i}`),
  );
  assert.deepEqual(
    answer.json.rejected,
    invalidItems.map(([, errors], i) => ({ index: 2 * i + 1, errors })),
  );
  assert.ok(!answer.text.includes(word), 'a value is never repeated');
  assert.deepEqual(await listed(key), answer.json.traces);
});

test('if no trace is valid nothing is stored, and each wrong field is named with its index', async () => {
  const { key } = await service.keyFor();
  const answer = await post(
    key,
    invalidItems.map(([item]) => item),
  );
  http.assertProblem(answer, 'invalid_input');
  assert.deepEqual(
    answer.json.errors,
    invalidItems.flatMap(([, errors], i) =>
      errors.map(({ field, message }) => ({
        field: field === 'trace' ? `traces.${i}` : `traces.${i}.${field}`,
        message,
      })),
    ),
  );
  assert.ok(!answer.text.includes(word), 'a value is never repeated');
  assert.doesNotMatch(service.log(), new RegExp(word));
  assert.equal(await totalOf(key), 0);
});

test('each trace of a batch is validated and stored like a single one', async () => {
  const { key } = await service.keyFor();
  const bodies: unknown[] = [
    ...invalidItems.map(([item]) => item).filter((item) => typeof item === 'object' && item),
    { model: 'm', prompt_tokens: 2 ** 31 },
    { model: 'm', prompt_tokens: 2 ** 31 - 1, completion_tokens: 0, cost_usd: 1e-7 },
    { model: 'm', error_message: 'timeout' },
    { model: 'm', input: null, output: '', feature_name: null },
    { model: 'm\ud800', input: 'a\u0000b', user_identifier: '😀'.repeat(255) },
    { model: 'm', extra: { deep: [1] }, toString: 1 },
  ];
  const outcomes: unknown[] = [];
  for (const body of bodies) {
    const { status, json } = await service.call(key, 'POST', '/traces', body);
    outcomes.push(status === 201 ? withoutStamp(json) : json.errors);
  }
  const { json } = await post(key, bodies);
  const fromBatch: unknown[] = [];
  for (const { index, errors } of json.rejected) fromBatch[index] = errors;
  for (const trace of json.traces as Stored[]) {
    const free = bodies.findIndex((_, i) => fromBatch[i] === undefined);
    fromBatch[free] = withoutStamp(trace);
  }
  // A single body that is not an object is reported under another name.
  const sameName = JSON.parse(JSON.stringify(fromBatch).replaceAll('"trace"', '"body"'));
  assert.deepEqual(sameName, outcomes);
  assert.ok(json.traces.length >= 4 && json.rejected.length >= 8);
});

function withoutStamp({ id: _id, created_at: _at, ...rest }: Stored): object {
  return rest;
}

test('fields that are unknown, or not the caller’s to set, have no effect', async () => {
  const [{ key, teamId }, other] = [await service.keyFor(), await service.keyFor()];
  const wish = {
    id: '00000000-0000-7000-8000-000000000001',
    team_id: other.teamId,
    created_at: '2001-01-01T00:00:00.000000Z',
    seq: 1,
    timesUs: [1],
    once: { keyHash: 'x' },
  };
  const text = JSON.stringify({
    traces: [
      { model: 'a', ...wish },
      { ...wish, model: 'b' },
    ],
    ...wish,
    rejected: [{ index: 0 }],
    omit: 'input',
  });
  const sneaky = text.replace('"model":"a"', '"model":"a","__proto__":{"input":"p"}');
  const { status, json } = await service.call(key, 'POST', '/traces/batch', sneaky);
  assert.equal(status, 201);
  assert.deepEqual(modelsOf(json.traces), ['a', 'b']);
  for (const { id, team_id, created_at, input } of json.traces) {
    assert.notEqual(id, wish.id);
    assert.deepEqual([team_id, input], [teamId, null]);
    assert.ok(Date.parse(created_at) >= Math.floor(performance.timeOrigin), created_at);
  }
  assert.equal(await totalOf(other.key), 0);
  assert.equal(Reflect.get({}, 'input'), undefined);
});

/** A trace of just this many bytes of JSON. */
function traceOf(bytes: number, model = 'm'): { model: string; input: string } {
  const empty = JSON.stringify({ model, input: '' });
  return { model, input: 'x'.repeat(bytes - empty.length) };
}

describe('a trace that is larger than a single one may be', () => {
  const batchTo = (at: TestService, key: string, traces: unknown[]): Promise<Answer> =>
    at.call(key, 'POST', '/traces/batch?omit=input', { traces });

  test('is rejected by its index to the byte, and the others are stored', async () => {
    const { key } = await narrow.keyFor();
    const items = [itemBytesMax, itemBytesMax + 1, itemBytesMax - 1, 30].map((n) => traceOf(n));
    const answer = await batchTo(narrow, key, items);
    const errors = [{ field: 'trace', message: `must be at most ${itemBytesMax} bytes of JSON` }];
    assert.deepEqual([answer.status, answer.json.rejected], [201, [{ index: 1, errors }]]);
    assert.equal(await totalOf(key, narrow), 3);
    const single = await narrow.call(key, 'POST', '/traces', traceOf(itemBytesMax + 1));
    assert.equal(single.status, 413);
  });
  test('is counted in bytes of UTF-8, unknown fields included', async () => {
    const { key } = await narrow.keyFor();
    const items = [
      { model: 'm', input: 'é'.repeat(1000) },
      { model: 'm', input: 'é'.repeat(1100) },
      { model: 'm', extra: 'x'.repeat(itemBytesMax) },
      { model: 'm', extra: [[[[[['x'.repeat(itemBytesMax)]]]]]] },
    ];
    const { json } = await batchTo(narrow, key, items);
    assert.deepEqual(
      json.rejected.map(({ index }: { index: number }) => index),
      [1, 2, 3],
    );
  });
  test('is reported like any other if no trace is valid', async () => {
    const { key } = await narrow.keyFor();
    const answer = await batchTo(narrow, key, [traceOf(3000), { model: '' }]);
    http.assertProblem(answer, 'invalid_input');
    assert.deepEqual(
      answer.json.errors.map(({ field }: FieldError) => field),
      ['traces.0', 'traces.1.model'],
    );
    assert.equal(await totalOf(key, narrow), 0);
  });
  test('is also rejected at the default limit', async () => {
    const { key } = await service.keyFor();
    const items = [
      { model: 'small' },
      traceOf(limits.bodyBytesMax + 1),
      traceOf(limits.bodyBytesMax),
    ];
    const { status, json } = await batchTo(service, key, items);
    assert.deepEqual([status, json.traces.length, json.rejected[0].index], [201, 2, 1]);
  });
});

test('a body of 20 MiB is taken, and one byte more is refused', async () => {
  const { key } = await service.keyFor();
  const items = [1, 2, 3, 4].map((n) => traceOf(limits.bodyBytesMax - 64, `m${n}`));
  const bare = JSON.stringify({ traces: items });
  const spaces = limits.batchBodyBytesMax - bare.length;
  assert.ok(spaces > 0);
  const whole = `${bare}${' '.repeat(spaces)}`;
  const taken = await service.call(key, 'POST', '/traces/batch?omit=input', whole);
  assert.equal(taken.status, 201, taken.text.slice(0, 300));
  assert.deepEqual(modelsOf(taken.json.traces), ['m1', 'm2', 'm3', 'm4']);
  const newest = await service.call(key, 'GET', `/traces/${taken.json.traces[3].id}`);
  assert.equal(newest.json.input.length, items[3]?.input.length);

  // Its length alone refuses it, before a byte of it is read.
  const lines = [
    'POST /traces/batch HTTP/1.1',
    'host: x',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    'connection: close',
    `content-length: ${whole.length + 1}`,
  ];
  const early = await http.sendBytes(service.url, `${lines.join('\r\n')}\r\n\r\n{`);
  http.assertProblem(early, 'body_too_large');
  assert.equal(await totalOf(key), 4);
});

test('a batch may hold more than the limit of a single body', async () => {
  const { key } = await narrow.keyFor();
  const items = Array.from({ length: 1000 }, () => traceOf(1000));
  const { status, json } = await narrow.call(key, 'POST', '/traces/batch', { traces: items });
  assert.deepEqual([status, json.traces.length], [201, 1000]);
});

test('omitted payloads are left out of the reply and still stored', async () => {
  const { key } = await service.keyFor();
  const trace = { model: 'm', input: 'in', output: 'out', error_message: 'err' };
  const payloads = ['input', 'output', 'error_message'];
  const rows: [query: string, fields: string[]][] = [
    ['', payloads],
    ['?omit=input', ['output', 'error_message']],
    ['?omit=output', ['input', 'error_message']],
    ['?omit=error_message', ['input', 'output']],
    ['?omit=input,output', ['error_message']],
    ['?omit=output,input', ['error_message']],
    ['?omit=error_message,input', ['output']],
    ['?omit=error_message,input,output', []],
  ];
  for (const [query, fields] of rows) {
    const { status, json } = await post(key, [trace, trace], query);
    assert.equal(status, 201);
    for (const shown of json.traces) {
      const there = Object.keys(shown).filter((name) => payloads.includes(name));
      assert.deepEqual(there, fields, query);
      const found = await service.call(key, 'GET', `/traces/${shown.id}`);
      assert.deepEqual(
        payloads.map((name) => found.json[name]),
        ['in', 'out', 'err'],
      );
    }
  }
  const bad = ['model', '', 'input&omit=output', 'input,', 'error_message,input,error_message'];
  for (const query of bad.map((omit) => `?omit=${omit}`)) {
    http.assertFieldError(await post(key, [trace], query), 'omit');
  }
  assert.equal(await totalOf(key), 2 * rows.length);
});

test('a batch belongs only to the team of its API key', async () => {
  const [{ key, teamId }, stranger] = [await service.keyFor(), await service.keyFor()];
  const { json } = await post(key, named(3));
  for (const { id, team_id } of json.traces) {
    assert.equal(team_id, teamId);
    assert.equal((await service.call(stranger.key, 'GET', `/traces/${id}`)).status, 404);
  }
  assert.equal(await totalOf(stranger.key), 0);
});

test('a batch that fails in the queue or the store stores nothing', async () => {
  const narrowQueue = { queueRowsMax: 10, queueBytesMax: 100_000 };
  const full = await http.startBrokenService({}, narrowQueue);
  const sent = (traces: readonly unknown[]): http.Sent => ({
    method: 'POST',
    path: '/traces/batch',
    headers: { ...http.bearer(full.key), ...http.jsonType },
    body: JSON.stringify({ traces }),
  });
  try {
    http.assertProblem(await http.send(full.url, sent(named(11))), 'queue_full');
    assert.match(full.log(), /"code":"queue_full","reason":"Too many writes/);
    // Payloads wait for the store as they are stored, so this one must not be compressible.
    const input = randomBytes(150_000).toString('base64');
    http.assertProblem(await http.send(full.url, sent([{ model: 'm', input }])), 'queue_full');
    assert.equal((await http.send(full.url, sent(named(10)))).status, 201);
    const list = await http.send(full.url, { path: '/traces', headers: http.bearer(full.key) });
    assert.equal(list.json.total, 10);
  } finally {
    await full.stop();
  }
  for (const code of ['disk_full', 'store_unavailable'] as const) {
    const broken = await http.startBrokenService({
      append: async (all) =>
        all.map(() => ({ kind: 'failed', code, reason: 'planned by this test' })),
    });
    try {
      const headers = { ...http.bearer(broken.key), ...http.jsonType };
      http.assertProblem(await http.send(broken.url, { ...sent(named(3)), headers }), code);
    } finally {
      await broken.stop();
    }
  }
});
