import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { manualClock, startTestService, us } from '../support/service.ts';
import type { Answer, KeyHolder, ManualClock, TestService } from '../support/service.ts';
import { assertFieldError } from './helpers.ts';

const now = us('2026-11-04T12:00:00Z');
const count = 60;
let clock: ManualClock;
let service: TestService;
let team: KeyHolder;

interface Sent {
  model: string;
  started_at: string;
  [field: string]: unknown;
}

const long = 'an uninteresting sentence; '.repeat(200);
/** Stored in this order; the calls began in another one. */
const traces: Sent[] = Array.from({ length: count }, (_, i) => ({
  model: `m${i % 3}`,
  started_at: new Date(now / 1000 - ((i * 7) % count) * 3_600_000).toISOString(),
  latency_ms: i * 10,
  ...(i % 4 === 0 ? {} : { cost_usd: i / 1_000 }),
  ...(i % 5 === 0 ? { status: 'error', error_type: 'timeout', error_message: `boom ${i}` } : {}),
  ...(i % 6 === 0 ? {} : { user_identifier: `u${i % 2}` }),
  ...(i % 10 < 3 ? { session_id: 's1', run_id: `r${i % 2}` } : {}),
  ...(i % 7 === 0 ? { metadata: { tier: 'gold' }, input: `${long}Grüße ${i} <b>` } : {}),
  ...(i % 11 === 0 ? { output: `100%_done ${i}` } : {}),
}));

before(async () => {
  clock = manualClock(now);
  service = await startTestService({ clock });
  team = await service.keyFor();
  for (let at = 0; at < count; at += 20) {
    const batch = { traces: traces.slice(at, at + 20) };
    assert.equal((await service.call(team.key, 'POST', '/traces/batch', batch)).status, 201);
  }
});
after(() => service.stop());

function list(query: string): Promise<Answer> {
  return service.call(team.key, 'GET', `/traces?${query}`);
}

/** Every page, by cursor. */
async function all(query: string): Promise<Sent[]> {
  const found: Sent[] = [];
  let cursor = '';
  for (let pages = 0; pages <= count; pages++) {
    const { status, json, text } = await list(`${query}${cursor}`);
    assert.equal(status, 200, text);
    assert.deepEqual(Object.keys(json), ['traces', 'limit', 'next_cursor', 'searched_to']);
    found.push(...json.traces);
    if (json.next_cursor === null) {
      assert.equal(json.searched_to, null);
      return found;
    }
    cursor = `&cursor=${json.next_cursor}`;
  }
  return assert.fail('the cursors do not end');
}

const is =
  (field: string, ...values: unknown[]) =>
  (trace: Sent): boolean =>
    values.includes(trace[field] ?? null);
const between =
  (from: string, to: string) =>
  ({ started_at }: Sent): boolean =>
    started_at >= from && started_at < to;

const rows: [query: string, isListed: (trace: Sent) => boolean][] = [
  ['model=m1', is('model', 'm1')],
  ['model=m1&model=m2', is('model', 'm1', 'm2')],
  ['model=none', () => false],
  ['status=error', is('status', 'error')],
  ['status=success&model=m0', (t) => t['status'] === undefined && t.model === 'm0'],
  ['status=success&status=error', () => true],
  ['error_type=', is('error_type', null)],
  ['user_identifier=u0', is('user_identifier', 'u0')],
  ['user_identifier=u0&user_identifier=u1', is('user_identifier', 'u0', 'u1')],
  ['user_identifier=', is('user_identifier', null)],
  [
    'user_identifier=u1&status=error',
    (t) => t['user_identifier'] === 'u1' && t['status'] === 'error',
  ],
  ['session_id=s1', is('session_id', 's1')],
  ['run_id=r1', is('run_id', 'r1')],
  ['metadata.tier=gold', (t) => t['metadata'] !== undefined],
  ['metadata.tier=', (t) => t['metadata'] === undefined],
  [
    'metadata.tier=gold&status=error',
    (t) => t['metadata'] !== undefined && t['status'] === 'error',
  ],
  ['min_latency_ms=300', (t) => Number(t['latency_ms']) >= 300],
  ['min_cost_usd=0.03', (t) => Number(t['cost_usd'] ?? 0) >= 0.03],
  ['min_cost_usd=0', (t) => t['cost_usd'] !== undefined],
  ['q=boom', (t) => t['error_message'] !== undefined],
  ['q=Boom', () => false],
  [`q=${encodeURIComponent('Grüße 7')}`, (t) => String(t['input']).includes('Grüße 7')],
  [`q=${encodeURIComponent('100%_done')}`, (t) => t['output'] !== undefined],
  [
    `q=${encodeURIComponent('uninteresting sentence; an')}&model=m0`,
    (t) => t['input'] !== undefined && t.model === 'm0',
  ],
  ['q=gold', () => false],
  ['from=2026-11-04', between('2026-11-04', '9')],
  ['to=2026-11-02', between('0', '2026-11-03')],
  ['last=24h', between('2026-11-03T12:00', '2026-11-04T13:00')],
  [
    'from=2026-11-03T00:00:00.5Z&to=2026-11-03T23:59:59.999999Z',
    between('2026-11-03T00:00:00.500', '2026-11-03T23:59:59.9'),
  ],
  [
    'from=2026-11-03&model=m2&status=error',
    (t) => between('2026-11-03', '9')(t) && t.model === 'm2' && t['status'] === 'error',
  ],
  [
    'from=2026-11-03&user_identifier=u1',
    (t) => between('2026-11-03', '9')(t) && t['user_identifier'] === 'u1',
  ],
];

describe('a filtered list has exactly the traces that match, newest first', () => {
  for (const [query, isListed] of rows) {
    for (const limit of [7, 100]) {
      test(`${query}&limit=${limit}`, async () => {
        const found = await all(`${query}&limit=${limit}`);
        const expected = traces.filter(isListed).toReversed();
        assert.deepEqual(
          found.map(({ latency_ms }) => latency_ms),
          expected.map(({ latency_ms }) => latency_ms),
        );
      });
    }
  }
});

test('before and after the traces are rolled up', async () => {
  const found = await all('user_identifier=u1&limit=3');
  await service.beside.roll(team.teamId, 40);
  assert.deepEqual(await all('user_identifier=u1&limit=3'), found);
});

test('omit and preview_chars apply to a filtered list, and may change from page to page', async () => {
  const first = await list('metadata.tier=gold&limit=1&omit=output,error_message&preview_chars=3');
  const [trace] = first.json.traces;
  assert.deepEqual(
    [trace.input, trace.metadata, 'output' in trace],
    ['an ', { tier: 'gold' }, false],
  );
  const next = await list(`metadata.tier=gold&limit=2&cursor=${first.json.next_cursor}`);
  assert.equal(next.json.traces.length, 2);
  assert.ok(next.json.traces[0].input.length > 3);
  const whole = await service.call(team.key, 'GET', `/traces/${next.json.traces[0].id}`);
  assert.deepEqual(next.json.traces[0], whole.json);
});

test('traces that arrive between two pages are not on the second one, and none is skipped', async () => {
  const { key } = await service.keyFor();
  const post = (model: string) => service.call(key, 'POST', '/traces', { model });
  for (const model of ['a', 'b', 'a', 'a']) await post(model);
  const first = (await service.call(key, 'GET', '/traces?model=a&limit=2')).json;
  await post('a');
  assert.equal(first.searched_to, first.traces[1].created_at);
  const next = `/traces?model=a&limit=2&cursor=${first.next_cursor}`;
  const second = (await service.call(key, 'GET', next)).json;
  assert.deepEqual([first.traces.length, second.traces.length], [2, 1]);
  assert.equal(second.next_cursor, null);
});

test('with a relative range every page is about the range of the first one', async () => {
  const first = (await list('last=24h&limit=1')).json;
  clock.set(now + 30 * 86_400_000_000);
  const second = (await list(`last=24h&limit=100&cursor=${first.next_cursor}`)).json;
  assert.ok(second.traces.length > 10);
  assert.equal((await list('last=24h')).json.traces.length, 0);
  clock.set(now);
});

describe('a cursor is accepted only for the list that it came from', () => {
  test('other filters, another team, or a changed cursor', async () => {
    const { next_cursor: cursor } = (await list('model=m1&status=error&limit=1')).json;
    assert.equal((await list(`status=error&model=m1&cursor=${cursor}`)).status, 200);
    const message = 'must be the next_cursor of a list with the same filters';
    const [text = '', signature = ''] = cursor.split('.');
    const other = Buffer.from('[50,null,null,null]').toString('base64url');
    for (const query of [
      `model=m1&cursor=${cursor}`,
      `model=m2&status=error&cursor=${cursor}`,
      `cursor=${cursor}`,
      `model=m1&status=error&cursor=${other}.${signature}`,
      `model=m1&status=error&cursor=${text}.${'A'.repeat(43)}`,
      `model=m1&status=error&cursor=${text}`,
      'model=m1&status=error&cursor=',
    ]) {
      assertFieldError(await list(query), 'cursor', message);
    }
    const stranger = await service.keyFor();
    const path = `/traces?model=m1&status=error&cursor=${cursor}`;
    assertFieldError(await service.call(stranger.key, 'GET', path), 'cursor', message);
  });
});

describe('the traces of a session or run in the order of the calls', () => {
  for (const [field, value] of [
    ['session_id', 's1'],
    ['run_id', 'r0'],
  ] as const) {
    test(field, async () => {
      const expected = traces
        .filter(is(field, value))
        .sort((a, b) => (a.started_at < b.started_at ? -1 : 1));
      for (const limit of [1, 4, 100]) {
        const found = await all(`${field}=${value}&order=started_at&limit=${limit}`);
        assert.deepEqual(
          found.map(({ latency_ms }) => latency_ms),
          expected.map(({ latency_ms }) => latency_ms),
        );
      }
    });
  }
  test('not together with anything else', async () => {
    const message = 'must be combined with one session_id or one run_id alone';
    for (const query of [
      'order=started_at',
      'order=started_at&model=m1',
      'order=started_at&session_id=',
      'order=started_at&session_id=s1&session_id=s2',
      'order=started_at&session_id=s1&run_id=r1',
      'order=started_at&session_id=s1&status=error',
      'order=started_at&session_id=s1&last=7d',
      'order=started_at&session_id=s1&q=boom',
      'order=started_at&session_id=s1&metadata.tier=gold',
    ]) {
      assertFieldError(await list(query), 'order', message);
    }
    assertFieldError(
      await list('order=created_at&session_id=s1'),
      'order',
      'must be one of "started_at"',
    );
  });
});

describe('what a list refuses', () => {
  const invalid: [query: string, field: string, message: RegExp][] = [
    ['page=1&model=m1', 'page', /^must not be combined with a filter; use cursor$/],
    ['page=2&last=7d', 'page', /^must not be combined/],
    ['min_latency_ms=', 'min_latency_ms', /^must be an integer from 0/],
    ['min_latency_ms=-1', 'min_latency_ms', /^must be an integer from 0/],
    ['min_latency_ms=1.5', 'min_latency_ms', /^must be an integer from 0/],
    ['min_cost_usd=free', 'min_cost_usd', /^must be a number such as 0.05/],
    ['min_cost_usd=1e3', 'min_cost_usd', /^must be a number such as 0.05/],
    ['q=', 'q', /^must have 1 to 200 characters$/],
    [`q=${'x'.repeat(201)}`, 'q', /^must have 1 to 200 characters$/],
    ['q=a&q=b', 'q', /^must appear only once$/],
    ['from=yesterday', 'from', /^must be a date such as/],
    ['from=2026-11-03&to=2026-11-02', 'from', /^must be before to$/],
    ['last=7d&to=2026-11-02', 'last', /^must not be combined with from or to$/],
    ['status=ok', 'status', /^must be "success" or "error"$/],
    ['model=a%00', 'model', /^must have at most 255 characters/],
  ];
  for (const [query, field, message] of invalid) {
    test(query.slice(0, 50), async () => {
      assert.match(assertFieldError(await list(query), field), message);
    });
  }
});

test('an instant of a list need not be a whole hour, and HEAD works too', async () => {
  assert.equal((await list('from=2026-11-03T00:00:00.000001Z')).status, 200);
  assert.equal((await service.call(team.key, 'HEAD', '/traces?model=m1')).status, 200);
});
