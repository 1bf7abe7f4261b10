import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { draftTrace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import { fieldErrors } from '../../src/http/field-errors.ts';
import { checkKeyword } from '../../src/http/trace-checks.ts';
import { TraceInputSchema } from '../../src/http/trace-schemas.ts';

const nowUs = Date.UTC(2026, 10, 4, 9, 30) * 1000;

/** The schema of a trace in Fastify with the options of the service: replies with the draft, or with the errors by field. */
let app: FastifyInstance;

before(async () => {
  const keywords = ['openapi', 'rule', checkKeyword(() => nowUs)];
  const customOptions = { coerceTypes: false, allErrors: true, allowUnionTypes: true, keywords };
  app = fastify({ ajv: { customOptions } as object });
  app.post('/', { schema: { body: TraceInputSchema } }, (request) =>
    draftTrace(request.body as TraceInput),
  );
  app.setErrorHandler(({ validation }: { validation?: [] }, _request, reply) =>
    reply.code(422).send(fieldErrors(validation ?? [])),
  );
  await app.ready();
});
after(() => app.close());

async function post(fields: object): Promise<{ status: number; json: unknown }> {
  const payload = JSON.stringify({ model: 'm', ...fields });
  const headers = { 'content-type': 'application/json' };
  const reply = await app.inject({ method: 'POST', url: '/', headers, payload });
  return { status: reply.statusCode, json: reply.json() };
}

async function assertRejected(fields: object, messages: Record<string, string>): Promise<void> {
  const errors = Object.entries(messages).map(([field, message]) => ({ field, message }));
  assert.deepEqual(await post(fields), { status: 422, json: errors }, JSON.stringify(fields));
}

async function assertStored(fields: object, expected: object): Promise<void> {
  const { status, json } = await post(fields);
  assert.equal(status, 200, `${JSON.stringify(fields)} ${JSON.stringify(json)}`);
  const draft = json as Record<string, unknown>;
  const stored = Object.fromEntries(Object.keys(expected).map((name) => [name, draft[name]]));
  assert.deepEqual(stored, expected);
}

const times = {
  'must be a string or null': [0, 1762248600, 1762248600000, true, {}, []],
  'must be an RFC 3339 time, such as 2026-11-04T09:30:00Z': [
    '',
    'yesterday',
    '2026-11-04',
    '2026-11-04T09:30:00',
    '2026-11-04 09:30:00Z',
    '2026-02-30T00:00:00Z',
    '1762248600',
  ],
  'must not be before 2000-01-01': [
    '1999-12-31T23:59:59.999999Z',
    '2000-01-01T00:00:00+00:01',
    '0001-01-01T00:00:00Z',
    '0099-01-01T00:00:00Z',
  ],
  "must not be more than 24 hours ahead of the server's clock": [
    '2026-11-05T09:30:00.000001Z',
    '2026-11-05T09:30:00-00:01',
    '9999-12-31T23:59:59Z',
  ],
};

for (const [message, values] of Object.entries(times)) {
  test(`started_at ${message}`, async () => {
    for (const started_at of values) await assertRejected({ started_at }, { started_at: message });
  });
}

test('a started_at from 2000-01-01 to 24 hours ahead is stored in microseconds', async () => {
  const good: [sent: string, ms: number][] = [
    ['2000-01-01T00:00:00Z', Date.UTC(2000, 0, 1)],
    ['1999-12-31T23:00:00-01:00', Date.UTC(2000, 0, 1)],
    ['2026-11-05T09:30:00Z', nowUs / 1000 + 86_400_000],
    ['2026-11-04T15:15:00+05:45', nowUs / 1000],
  ];
  for (const [sent, ms] of good)
    await assertStored({ started_at: sent }, { started_at: ms * 1000 });
  await assertStored({ started_at: null }, { started_at: null });
});

test('cached tokens are part of prompt_tokens, each and together', async () => {
  const prompt_tokens = 100;
  for (const name of ['cache_read_tokens', 'cache_write_tokens']) {
    await assertStored({ prompt_tokens, [name]: 100 }, { prompt_tokens, [name]: 100 });
    await assertRejected(
      { prompt_tokens, [name]: 101 },
      { [name]: 'must not be more than prompt_tokens' },
    );
    await assertRejected(
      { prompt_tokens: 0, [name]: 1 },
      { [name]: 'must not be more than prompt_tokens' },
    );
  }
  const exact = { prompt_tokens, cache_read_tokens: 60, cache_write_tokens: 40 };
  await assertStored(exact, exact);
  await assertRejected(
    { ...exact, cache_write_tokens: 41 },
    {
      cache_read_tokens: 'together with cache_write_tokens must not be more than prompt_tokens',
      cache_write_tokens: 'together with cache_read_tokens must not be more than prompt_tokens',
    },
  );
});

test('a part that is too large on its own is the only one that is reported', async () => {
  await assertRejected(
    { prompt_tokens: 10, cache_read_tokens: 5, cache_write_tokens: 11 },
    { cache_write_tokens: 'must not be more than prompt_tokens' },
  );
});

test('reasoning tokens are part of completion_tokens', async () => {
  const exact = { completion_tokens: 5, reasoning_tokens: 5 };
  await assertStored(exact, exact);
  await assertRejected(
    { ...exact, reasoning_tokens: 6 },
    { reasoning_tokens: 'must not be more than completion_tokens' },
  );
});

test('parts are accepted if the count that they belong to was not sent', async () => {
  const parts = { cache_read_tokens: 7, cache_write_tokens: 8, reasoning_tokens: 9 };
  await assertStored(parts, { ...parts, prompt_tokens: null, completion_tokens: null });
  await assertStored({ ...parts, prompt_tokens: null }, parts);
});

test('a count that is not valid is reported, and its parts are not compared with it', async () => {
  await assertRejected(
    { prompt_tokens: '5', cache_read_tokens: 7 },
    { prompt_tokens: 'must be an integer or null' },
  );
  await assertRejected(
    { prompt_tokens: 5, cache_read_tokens: '7' },
    { cache_read_tokens: 'must be an integer or null' },
  );
});

function entries(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`name-${i}`, 'value']));
}

const metadata: Readonly<Record<string, readonly unknown[]>> = {
  'must be a JSON object or null': ['{}', 1, true, [], ['a']],
  'must have at most 16 entries': [entries(17), entries(1_000)],
  'must not have an entry without a name': [{ '': 'x' }],
  'must have names of at most 64 characters': [
    { ['n'.repeat(65)]: 'x' },
    { ['😀'.repeat(65)]: 'x' },
  ],
  'must not have control characters in a name': [
    { 'a\nb': 'x' },
    { '\u0000': 'x' },
    { '\u0085': '' },
  ],
  'must not have lone surrogates in a name': [{ '\ud800': 'x' }, { a: 'x', 'b\udc00': 'y' }],
  'must have only strings as values': [
    { a: 1 },
    { a: null },
    { a: true },
    { a: { b: 'c' } },
    { a: ['b'] },
    { ok: 'yes', a: 1.5 },
  ],
  'must have values of at most 255 characters': [{ a: 'v'.repeat(256) }, { a: '😀'.repeat(256) }],
};

for (const [message, values] of Object.entries(metadata)) {
  test(`metadata ${message}`, async () => {
    for (const value of values) await assertRejected({ metadata: value }, { metadata: message });
  });
}

test('metadata up to its limits is stored as JSON', async () => {
  const good = [
    {},
    entries(16),
    { ['n'.repeat(64)]: 'v'.repeat(255) },
    { ['😀'.repeat(64)]: '😀'.repeat(255) },
    { customer: '', 'a b.c/d~e': 'line\nbreak\u0000', '"': '"' },
  ];
  for (const value of good) {
    await assertStored({ metadata: value }, { metadata: JSON.stringify(value) });
  }
  await assertStored({ metadata: null }, { metadata: null });
});

test('several violations are all reported, each under its field', async () => {
  await assertRejected(
    {
      completion_tokens: 1,
      started_at: '1999-01-01T00:00:00Z',
      environment: '',
      reasoning_tokens: 2,
      ttft_ms: -1,
      metadata: { a: 1 },
    },
    {
      started_at: 'must not be before 2000-01-01',
      environment: 'must not be empty',
      reasoning_tokens: 'must not be more than completion_tokens',
      ttft_ms: 'must be at least 0',
      metadata: 'must have only strings as values',
    },
  );
});
