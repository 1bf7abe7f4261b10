import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertFieldError, assertProblem } from './helpers.ts';

let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService();
  team = await service.keyFor();
});
after(() => service.stop());

const dayMs = 86_400_000;
const hourMs = dayMs / 24;

/** Every field that a reply has only if it was sent, as it is shown. */
const extra = {
  response_model: 'gpt-4o-2024-08-06',
  started_at: '2026-03-01T09:30:00.123456Z',
  environment: 'production',
  provider: 'openai',
  session_id: 'session-1',
  run_id: 'run-1',
  cache_read_tokens: 60,
  cache_write_tokens: 40,
  reasoning_tokens: 7,
  ttft_ms: 120,
  error_type: 'timeout',
  metadata: { tier: 'gold', 'a "b"': 'line\nbreak', empty: '' },
};
const counts = { prompt_tokens: 100, completion_tokens: 7 };
const whole = { model: 'gpt-4o', ...counts, ...extra };

function post(body: object, key = team.key): Promise<Answer> {
  return service.call(key, 'POST', '/traces', body);
}

function assertShown(json: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(extra)) assert.deepEqual(json[name], value, name);
}

test('extra fields come back as they were sent, with the same bytes from POST, GET, lists and batches', async () => {
  const created = await post(whole);
  assert.equal(created.status, 201, created.text);
  assertShown(created.json);
  const read = await service.call(team.key, 'GET', `/traces/${created.json.id}`);
  assert.equal(read.text, created.text);
  const listed = await service.call(team.key, 'GET', '/traces?limit=1');
  assert.equal(JSON.stringify(listed.json.traces[0]), created.text);
  const batch = await service.call(team.key, 'POST', '/traces/batch', { traces: [whole, whole] });
  assert.equal(batch.status, 201, batch.text);
  for (const trace of batch.json.traces) assertShown(trace);
});

test('extra fields that were not sent, or sent as null, are not in any reply', async () => {
  const nulls = Object.fromEntries(Object.keys(extra).map((name) => [name, null]));
  for (const body of [{ model: 'm' }, { model: 'm', ...nulls }]) {
    const created = await post(body);
    const listed = await service.call(team.key, 'GET', '/traces?limit=1');
    for (const json of [created.json, listed.json.traces[0]]) {
      for (const name of Object.keys(extra)) assert.ok(!(name in json), name);
    }
  }
});

test('a repeated request gets the extra fields of the first reply', async () => {
  const headers = { 'idempotency-key': 'extra-fields' };
  const first = await service.call(team.key, 'POST', '/traces', whole, headers);
  const again = await service.call(team.key, 'POST', '/traces', whole, headers);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(again.text, first.text);
});

const violations: [field: string, fields: object, message: string][] = [
  ['started_at', { started_at: '1999-12-31T23:59:59Z' }, 'must not be before 2000-01-01'],
  [
    'started_at',
    { started_at: '2026-11-04' },
    'must be an RFC 3339 time, such as 2026-11-04T09:30:00Z',
  ],
  [
    'cache_read_tokens',
    { prompt_tokens: 5, cache_read_tokens: 6 },
    'must not be more than prompt_tokens',
  ],
  [
    'cache_write_tokens',
    { prompt_tokens: 5, cache_write_tokens: 6 },
    'must not be more than prompt_tokens',
  ],
  [
    'cache_write_tokens',
    { prompt_tokens: 5, cache_read_tokens: 3, cache_write_tokens: 3 },
    'together with cache_read_tokens must not be more than prompt_tokens',
  ],
  [
    'reasoning_tokens',
    { completion_tokens: 5, reasoning_tokens: 6 },
    'must not be more than completion_tokens',
  ],
  [
    'metadata',
    { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, 'v'])) },
    'must have at most 16 entries',
  ],
  ['metadata', { metadata: { tier: 1 } }, 'must have only strings as values'],
];

function errorOf(errors: readonly { field: string }[], field: string): unknown {
  return errors.find((error) => error.field === field);
}

describe('a violation is rejected under the name of its field, in single and batch requests', () => {
  for (const [field, fields, message] of violations) {
    test(`${field} ${message}`, async () => {
      const { key } = await service.keyFor();
      const alone = await post({ model: 'm', ...fields }, key);
      assertProblem(alone, 'invalid_input');
      assert.deepEqual(errorOf(alone.json.errors, field), { field, message });
      const traces = [{ model: 'first' }, { model: 'm', ...fields }, { model: 'last' }];
      const { status, json } = await service.call(key, 'POST', '/traces/batch', { traces });
      assert.equal(status, 201);
      assert.deepEqual(
        json.traces.map(({ model }: { model: string }) => model),
        ['first', 'last'],
      );
      const [{ index, errors }] = json.rejected;
      assert.equal(index, 1);
      assert.deepEqual(errorOf(errors, field), { field, message });
      const page = await service.call(key, 'GET', '/traces');
      assert.equal(page.json.total, 2);
    });
  }
});

test('started_at may be up to 24 hours ahead of the clock of the server', async () => {
  const ahead = (ms: number) => ({
    model: 'm',
    started_at: new Date(Date.now() + ms).toISOString(),
  });
  assert.equal((await post(ahead(dayMs - hourMs))).status, 201);
  assertFieldError(
    await post(ahead(dayMs + hourMs)),
    'started_at',
    "must not be more than 24 hours ahead of the server's clock",
  );
});

test('started_at decides the day of a call, and the sequence decides its place in the list', async () => {
  const { key } = await service.keyFor();
  const startMs = Date.now() - 3 * dayMs;
  const started_at = new Date(startMs).toISOString();
  assert.equal((await post({ model: 'now' }, key)).status, 201);
  assert.equal((await post({ model: 'earlier', started_at }, key)).status, 201);
  const { json: days } = await service.call(key, 'GET', '/analytics/daily');
  const callsByDate = Object.fromEntries(
    days.map(({ date, call_count }: { date: string; call_count: number }) => [date, call_count]),
  );
  assert.equal(callsByDate[started_at.slice(0, 10)], 1);
  const { json: page } = await service.call(key, 'GET', '/traces');
  const models = page.traces.map(({ model }: { model: string }) => model);
  assert.deepEqual(models, ['earlier', 'now']);
});

test('names and values of metadata are never logged or repeated in an error', async () => {
  const secret = 'extra-fields-secret';
  assert.equal((await post({ model: 'm', metadata: { [secret]: secret } })).status, 201);
  const bad = [{ [`${secret}\n`]: 'x' }, { [secret]: [secret] }, { [secret.repeat(9)]: secret }];
  for (const metadata of bad) {
    const answer = await post({ model: 'm', metadata });
    assertProblem(answer, 'invalid_input');
    assert.ok(!answer.text.includes(secret));
  }
  assert.ok(!service.log().includes(secret));
});
