import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { manualClock, startTestService, us } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertFieldError, assertProblem } from './helpers.ts';

/** Noon on a Wednesday in Kolkata, whose hours begin at half past in UTC. */
const now = us('2026-11-04T06:30:00Z');
const timeZone = 'Asia/Kolkata';
let service: TestService;
let team: KeyHolder;

interface Sent {
  model: string;
  started_at: string;
  [field: string]: unknown;
}

/** Fields that are not set are left out. */
const traces: Sent[] = [
  { model: 'a', feature_name: 'chat', user_identifier: 'u1', environment: 'prod', latency_ms: 10 },
  { model: 'a', feature_name: 'chat', user_identifier: 'u2', environment: 'prod', latency_ms: 30 },
  { model: 'b', feature_name: 'find', user_identifier: 'u1', environment: 'test', provider: 'x' },
  { model: 'b', user_identifier: 'u3', status: 'error', error_type: 'timeout', provider: 'y' },
  { model: 'c', session_id: 's1', run_id: 'r1', metadata: { tier: 'gold', '10 %/é': 'x&y' } },
  { model: 'c', session_id: 's1', run_id: 'r2', metadata: { tier: 'free' }, provider: 'x' },
  { model: 'c', session_id: 's2', status: 'error', feature_name: 'find', user_identifier: 'u1' },
].map((fields, i) => ({
  ...fields,
  // One each day, the last one today, on the whole hour.
  started_at: new Date(now / 1000 - (6 - i) * 86_400_000).toISOString(),
  cost_usd: (i + 1) / 1_000,
}));

before(async () => {
  service = await startTestService({ clock: manualClock(now) });
  team = await service.keyFor();
  await service.beside.rebuild(team.teamId, timeZone);
  const { json } = await service.call(team.key, 'POST', '/traces/batch', { traces });
  assert.equal(json.traces.length, traces.length);
});
after(() => service.stop());

function get(path: string): Promise<Answer> {
  return service.call(team.key, 'GET', path);
}

type Records = { call_count: number }[];
const callsOf = (records: Records): number =>
  records.reduce((sum, { call_count }) => sum + call_count, 0);

/** Every analytics endpoint: which traces it counts, and how many calls its reply has. */
const endpoints: Record<string, { field?: string; calls: (json: Answer['json']) => number }> = {
  '/analytics/overview': { calls: (json) => json.total_calls },
  '/analytics/daily': { calls: callsOf },
  '/analytics/by-model': { field: 'model', calls: callsOf },
  '/analytics/by-feature': { field: 'feature_name', calls: callsOf },
  '/analytics/by-user': { field: 'user_identifier', calls: callsOf },
  '/analytics/by-environment': { field: 'environment', calls: callsOf },
  '/analytics/by-provider': { field: 'provider', calls: callsOf },
  '/analytics/query': { calls: (json) => json.totals.call_count },
};

const is =
  (field: string, ...values: unknown[]) =>
  (trace: Sent): boolean =>
    values.includes(trace[field] ?? null);
const tier =
  (...values: unknown[]) =>
  ({ metadata }: Sent): boolean =>
    values.includes((metadata as Record<string, string> | undefined)?.['tier'] ?? null);
const since =
  (from: string, to = '9') =>
  ({ started_at }: Sent): boolean =>
    started_at >= from && started_at < to;

/** Each valid parameter, and the traces that it selects. */
const valid: [query: string, isSelected: (trace: Sent) => boolean][] = [
  ['', () => true],
  ['model=a', is('model', 'a')],
  ['model=a&model=b&model=a', is('model', 'a', 'b')],
  ['model=', () => false],
  ['model=A', () => false],
  ['feature_name=chat', is('feature_name', 'chat')],
  ['feature_name=', is('feature_name', null)],
  ['feature_name=&feature_name=find', is('feature_name', null, 'find')],
  ['user_identifier=u1', is('user_identifier', 'u1')],
  ['user_identifier=u1&user_identifier=u3', is('user_identifier', 'u1', 'u3')],
  ['user_identifier=u1&model=a', (t) => is('user_identifier', 'u1')(t) && is('model', 'a')(t)],
  ['user_identifier=&model=c', (t) => is('user_identifier', null)(t) && is('model', 'c')(t)],
  ['environment=prod', is('environment', 'prod')],
  ['environment=', is('environment', null)],
  ['provider=x&provider=y', is('provider', 'x', 'y')],
  ['status=error', is('status', 'error')],
  ['status=success', is('status', null)],
  ['status=success&status=error', () => true],
  ['error_type=timeout', is('error_type', 'timeout')],
  ['error_type=', is('error_type', null)],
  ['session_id=s1', is('session_id', 's1')],
  ['session_id=s1&run_id=r2', (t) => is('session_id', 's1')(t) && is('run_id', 'r2')(t)],
  ['run_id=r1&run_id=r2', is('run_id', 'r1', 'r2')],
  ['metadata.tier=gold', tier('gold')],
  ['metadata.tier=gold&metadata.tier=free', tier('gold', 'free')],
  ['metadata.tier=', tier(null)],
  ['metadata.none=gold', () => false],
  [`metadata.${encodeURIComponent('10 %/é')}=x%26y`, tier('gold')],
  ['metadata.tier=free&provider=x', tier('free')],
  ['from=2026-11-02', since('2026-11-01T18:30')],
  ['from=2026-11-02&to=2026-11-03', since('2026-11-01T18:30', '2026-11-03T18:30')],
  [
    'from=2026-11-02T06:30:00Z&to=2026-11-03T06:30:00Z',
    since('2026-11-02T06:30', '2026-11-03T06:30'),
  ],
  ['from=2026-11-02T12:00:00%2B05:30', since('2026-11-02T06:30')],
  ['from=2026-11-02T12:00:00%2B05:30&model=c&status=error', (t) => is('session_id', 's2')(t)],
  ['last=1d', since('2026-11-03T18:30')],
  ['last=3d', since('2026-11-01T18:30')],
  ['last=24h', since('2026-11-03T06:30')],
  ['last=23h', since('2026-11-03T07:30')],
  ['last=1h&user_identifier=u1', since('2026-11-04T05:30')],
];

for (const [path, { field, calls }] of Object.entries(endpoints)) {
  describe(`${path} counts exactly the calls that are asked for`, () => {
    for (const [query, isSelected] of valid) {
      test(query === '' ? 'without parameters' : query, async () => {
        const { status, json, text } = await get(`${path}?${query}`);
        assert.equal(status, 200, text);
        const counted = traces
          .filter(isSelected)
          .filter((trace) => field === undefined || trace[field] !== undefined);
        assert.equal(calls(json), counted.length);
      });
    }
  });
}

const label = 'must have at most 255 characters and no control characters';
const bound =
  'must be a date such as 2026-11-04, or an RFC 3339 time such as 2026-11-04T09:00:00Z (with + as %2B), from 1970 to 2199';
const last = 'must be a number of hours or days up to 9999, such as 24h or 30d';
const wholeHour = 'must be a whole hour in the time zone of the team, Asia/Kolkata, or a date';

/** Each invalid parameter, the field that the error names, and what was expected. */
const invalid: [query: string, field: string, message: string][] = [
  ...['model', 'feature_name', 'user_identifier', 'environment', 'provider', 'error_type']
    .concat('session_id', 'run_id')
    .flatMap((name): [string, string, string][] => [
      [`${name}=${'x'.repeat(256)}`, name, label],
      [`${name}=a%00b`, name, label],
      [`${name}=a&${name}=b%0A`, name, label],
    ]),
  [`model=${Array(101).fill('m').join('&model=')}`, 'model', 'must appear at most 100 times'],
  ['status=', 'status', 'must be "success" or "error"'],
  ['status=failed', 'status', 'must be "success" or "error"'],
  ['status=error&status=ok', 'status', 'must be "success" or "error"'],
  [`metadata.tier=${'x'.repeat(256)}`, 'metadata.tier', 'must have at most 255 characters'],
  [
    `metadata.${encodeURIComponent('a b')}=${'x'.repeat(256)}`,
    'metadata.NAME',
    'must have at most 255 characters',
  ],
  ...['', 'today', '2026-11', '2026-13-01', '2026-02-30', '1969-12-31', '2200-01-01', '20261104']
    .concat(
      '2026-11-04T09:00:00',
      '2026-11-04T25:00:00Z',
      '2026-11-04T09:00:00+05:30',
      '1762237800',
    )
    .flatMap((text): [string, string, string][] => [
      [`from=${text}`, 'from', bound],
      [`to=${text}`, 'to', bound],
    ]),
  ['from=2026-11-02T06:00:00Z', 'from', wholeHour],
  ['from=2026-11-02T06:30:00.000001Z', 'from', wholeHour],
  ['from=2026-11-01&to=2026-11-02T06:00:00Z', 'to', wholeHour],
  ['from=2026-11-03&to=2026-11-02', 'from', 'must be before to'],
  ['from=2026-11-03&to=2026-11-02T18:30:00Z', 'from', 'must be before to'],
  ['from=2026-11-05', 'from', 'must not be in the future'],
  ...['', '0d', '24', 'h', '1w', '-1d', '1.5h', '10000d', '24H', '24h%20'].map(
    (text): [string, string, string] => [`last=${text}`, 'last', last],
  ),
  ['last=7d&from=2026-11-01', 'last', 'must not be combined with from or to'],
  ['last=7d&to=2026-11-01', 'last', 'must not be combined with from or to'],
  ['from=2026-11-01&from=2026-11-02', 'from', 'must appear only once'],
  ['last=1d&last=1d', 'last', 'must appear only once'],
];

for (const path of Object.keys(endpoints)) {
  describe(`${path} refuses what it cannot answer`, () => {
    for (const [query, field, message] of invalid) {
      test(query.slice(0, 60), async () => {
        assertFieldError(await get(`${path}?${query}`), field, message);
      });
    }
    test('names that no metadata can have', async () => {
      for (const name of ['metadata.', 'metadata', `metadata.${'x'.repeat(65)}`, 'metadata.a%00']) {
        const answer = await get(`${path}?${name}=x`);
        assertProblem(answer, 'invalid_input');
        assert.match(answer.json.errors[0].message, /^is not a known parameter/, name);
      }
    });
    test('several mistakes at once', async () => {
      const answer = await get(`${path}?from=x&last=y&status=z&color=red`);
      const fields = answer.json.errors.map(({ field }: { field: string }) => field);
      assert.deepEqual(fields.sort(), ['color', 'from', 'last', 'status']);
    });
  });
}

describe('/analytics/daily returns the days of the range', () => {
  const rows: [query: string, first: string, days: number][] = [
    ['', '2026-10-29', 7],
    ['model=a', '2026-10-29', 7],
    ['last=1d', '2026-11-04', 1],
    ['last=24h', '2026-11-03', 2],
    ['last=400d', '2025-10-01', 400],
    ['from=2026-10-01&to=2026-10-31', '2026-10-01', 31],
    ['from=2026-11-02T18:30:00Z&to=2026-11-03T18:30:00Z', '2026-11-03', 1],
    ['from=2026-11-02T17:30:00Z&to=2026-11-03T19:30:00Z', '2026-11-02', 3],
    ['from=2026-12-01&to=2026-12-02', '2026-12-01', 2],
  ];
  for (const [query, first, days] of rows) {
    test(query === '' ? 'by default the last seven' : query, async () => {
      const { json } = await get(`/analytics/daily?${query}`);
      assert.equal(json.length, days);
      assert.equal(json[0].date, first);
    });
  }
  test('but at most 400', async () => {
    const message = 'must give at most 400 days';
    assertFieldError(await get('/analytics/daily?last=401d'), 'last', message);
    assertFieldError(await get('/analytics/daily?from=2020-01-01'), 'from', message);
    assertFieldError(await get('/analytics/daily?to=2026-11-04'), 'from', message);
  });
});

describe('the lists by user, environment and provider', () => {
  test('have the shape of by-model and leave out traces without a value', async () => {
    const { json } = await get('/analytics/by-user');
    assert.deepEqual(json, [
      {
        user_identifier: 'u1',
        call_count: 3,
        avg_latency_ms: 10,
        total_cost_usd: 0.011,
        success_rate: 66.67,
      },
      {
        user_identifier: 'u2',
        call_count: 1,
        avg_latency_ms: 30,
        total_cost_usd: 0.002,
        success_rate: 100,
      },
      {
        user_identifier: 'u3',
        call_count: 1,
        avg_latency_ms: 0,
        total_cost_usd: 0.004,
        success_rate: 0,
      },
    ]);
    const names = async (path: string, field: string): Promise<string[]> =>
      (await get(path)).json.map((record: Record<string, string>) => record[field]);
    assert.deepEqual(await names('/analytics/by-environment', 'environment'), ['prod', 'test']);
    assert.deepEqual(await names('/analytics/by-provider', 'provider'), ['x', 'y']);
    assert.deepEqual(await names('/analytics/by-user?limit=1', 'user_identifier'), ['u1']);
    assert.deepEqual(await names('/analytics/by-user?user_identifier=', 'user_identifier'), []);
  });
  test('have 100 records by default and at most 1,000', async () => {
    const { key } = await service.keyFor();
    const many = Array.from({ length: 150 }, (_, i) => ({ model: 'm', user_identifier: `u${i}` }));
    await service.call(key, 'POST', '/traces/batch', { traces: many });
    const count = async (query: string): Promise<number> =>
      (await service.call(key, 'GET', `/analytics/by-user${query}`)).json.length;
    assert.deepEqual(
      [await count(''), await count('?limit=120'), await count('?limit=1000')],
      [100, 120, 150],
    );
    assertFieldError(await get('/analytics/by-user?limit=1001'), 'limit');
  });
});
