import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { manualClock, startTestService, us } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertFieldError, assertProblem } from './helpers.ts';

const now = us('2026-11-04T12:00:00Z');
let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService({ clock: manualClock(now) });
  team = await service.keyFor();
  const traces = Array.from({ length: 90 }, (_, i) => ({
    model: `m${i % 3}`,
    user_identifier: `u${i % 30}`,
    cost_usd: (i % 3) / 1_000 + 1e-12,
    prompt_tokens: 2_000_000_000,
    ...(i % 3 === 0 ? {} : { latency_ms: i }),
    ...(i % 9 === 0 ? { status: 'error', error_type: 'timeout' } : {}),
    started_at: new Date(now / 1000 - i * 3_600_000).toISOString(),
  }));
  const { status } = await service.call(team.key, 'POST', '/traces/batch', { traces });
  assert.equal(status, 201);
});
after(() => service.stop());

function ask(query: string): Promise<Answer> {
  return service.call(team.key, 'GET', `/analytics/query?${query}`);
}

interface Row {
  start?: string;
  model?: string | null;
  call_count: number;
}

test('without parameters there is one row, which is the totals', async () => {
  const { json } = await ask('');
  assert.deepEqual(Object.keys(json), ['from', 'to', 'time_zone', 'rows', 'other', 'totals']);
  assert.deepEqual([json.from, json.to, json.time_zone, json.other], [null, null, 'UTC', []]);
  assert.deepEqual(json.rows, [json.totals]);
  assert.deepEqual(Object.keys(json.totals), [
    ...['call_count', 'error_count', 'success_rate', 'total_cost_usd', 'uncosted_calls'],
    ...['prompt_tokens', 'completion_tokens', 'cache_read_tokens', 'cache_write_tokens'],
    ...['reasoning_tokens', 'avg_latency_ms', 'p50_latency_ms', 'p90_latency_ms'],
    ...['p95_latency_ms', 'p99_latency_ms'],
  ]);
});

test('costs are exact and token counts may be large', async () => {
  const { text } = await ask('');
  assert.match(text, /"totals":\{"call_count":90,.*"total_cost_usd":0\.09000000009,/);
  assert.match(text, /"prompt_tokens":180000000000,/);
});

test('nothing at all is one row of zeros, and no rows if it is grouped', async () => {
  const { json } = await ask('model=none');
  assert.equal(json.rows.length, 1);
  assert.deepEqual([json.totals.call_count, json.totals.p95_latency_ms], [0, null]);
  const grouped = await ask('model=none&group_by=model&interval=day&fill=zero');
  assert.deepEqual([grouped.json.rows, grouped.json.other], [[], []]);
});

describe('groups are ranked', () => {
  const rows: [order: string, models: string[]][] = [
    ['', ['m2', 'm1', 'm0']],
    ['&order=total_cost_usd', ['m0', 'm1', 'm2']],
    ['&order=-error_count', ['m0', 'm1', 'm2']],
    ['&order=success_rate', ['m0', 'm1', 'm2']],
    // The first one has no latency.
    ['&order=avg_latency_ms', ['m1', 'm2', 'm0']],
    ['&order=-p99_latency_ms', ['m2', 'm1', 'm0']],
    ['&order=-call_count', ['m0', 'm1', 'm2']],
  ];
  for (const [order, models] of rows) {
    test(order === '' ? 'by cost' : order.slice(1), async () => {
      const { json } = await ask(`group_by=model${order}`);
      assert.deepEqual(
        json.rows.map(({ model }: Row) => model),
        models,
      );
      const cut = (await ask(`group_by=model&limit=1${order}`)).json;
      assert.deepEqual(cut.rows, json.rows.slice(0, 1));
      assert.equal(cut.other[0].call_count, 60);
    });
  }
});

test('two fields, of which one may not be set', async () => {
  const { json } = await ask('group_by=model,error_type&order=call_count');
  assert.deepEqual(
    json.rows.map((row: Record<string, unknown>) => [
      row['model'],
      row['error_type'],
      row['call_count'],
    ]),
    [
      ['m0', 'timeout', 10],
      ['m0', null, 20],
      ['m1', null, 30],
      ['m2', null, 30],
    ],
  );
});

test('very many users per day: the best ones, and the rest of each day', async () => {
  const { json } = await ask('group_by=user_identifier&interval=day&limit=2&last=7d');
  const users = new Set(json.rows.map((row: Record<string, unknown>) => row['user_identifier']));
  assert.equal(users.size, 2);
  const sum = (rows: Row[]): number => rows.reduce((calls, row) => calls + row.call_count, 0);
  assert.equal(sum(json.rows), 6);
  assert.equal(sum(json.rows) + sum(json.other), json.totals.call_count);
  assert.equal(json.totals.call_count, 90);
});

test('a long answer is sent in pieces and has every interval', async () => {
  const { json, headers } = await ask('interval=hour&fill=zero&last=30d');
  assert.equal(headers.get('transfer-encoding'), 'chunked');
  assert.equal(json.rows.length, 30 * 24);
  assert.equal(new Set(json.rows.map(({ start }: Row) => start)).size, 30 * 24);
  assert.equal(json.rows.at(-1).start, '2026-11-04T23:00:00+00:00');
  const head = await service.call(
    team.key,
    'HEAD',
    '/analytics/query?interval=hour&fill=zero&last=30d',
  );
  assert.equal(head.status, 200);
});

test('more than 10,000 rows are refused with a hint', async () => {
  for (const query of [
    'interval=hour&fill=zero&last=500d',
    'interval=hour&group_by=model&fill=zero&last=200d',
  ]) {
    const answer = await ask(query);
    assertProblem(answer, 'question_too_wide');
    assert.match(answer.json.detail, /more than 10,000 rows\. Choose a shorter time range,/);
  }
});

describe('what it refuses', () => {
  const group =
    'must be one or two of model, feature_name, user_identifier, environment, provider, status, error_type, separated by a comma';
  const rows: [query: string, field: string, message: RegExp | string][] = [
    ['group_by=', 'group_by', group],
    ['group_by=session_id', 'group_by', group],
    ['group_by=model,model', 'group_by', group],
    ['group_by=model,status,provider', 'group_by', group],
    ['group_by=model,', 'group_by', group],
    ['group_by=model&group_by=status', 'group_by', 'must appear only once'],
    ['interval=year', 'interval', 'must be one of "hour", "day", "week", "month"'],
    [
      'group_by=model&order=model',
      'order',
      /^must be one of call_count, .*, with - for descending$/,
    ],
    ['group_by=model&order=%2Bcall_count', 'order', /^must be one of call_count/],
    ['group_by=model&limit=0', 'limit', 'must be an integer from 1 to 1000'],
    ['group_by=model&limit=1001', 'limit', 'must be an integer from 1 to 1000'],
    ['interval=day&fill=null', 'fill', 'must be one of "zero"'],
    ['order=-call_count', 'order', 'must be combined with group_by'],
    ['limit=5', 'limit', 'must be combined with group_by'],
    ['fill=zero', 'fill', 'must be combined with interval'],
  ];
  for (const [query, field, message] of rows) {
    test(query, async () => {
      const found = assertFieldError(await ask(query), field);
      if (typeof message === 'string') assert.equal(found, message);
      else assert.match(found, message);
    });
  }
});
