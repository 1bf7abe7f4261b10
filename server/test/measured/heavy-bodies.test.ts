import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { bearer, send } from '../http/helpers.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertVerified, assertServes, totalOf, within } from '../security/helpers.ts';

const answerMsMax = 5_000;
let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService();
  team = await service.keyFor();
});
after(() => service.stop());

function post(text: string): Promise<Answer> {
  return within(answerMsMax, text.slice(0, 60), () =>
    service.call(team.key, 'POST', '/traces', text),
  );
}

const deep = (open: string, close: string, depth: number): string =>
  `${open.repeat(depth)}0${close.repeat(depth)}`;
const deepArray = deep('[', ']', 100_000);
const deepObject = deep('{"a":', '}', 100_000);
const manyKeys = (count: number, name: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => `"${name(i)}":${i}`).join();
const digits = (count: number): string => '9'.repeat(count);
const tiny = `0.${'0'.repeat(399)}1`;
const knownFields = (
  'model input output prompt_tokens completion_tokens latency_ms cost_usd status error_message ' +
  'feature_name user_identifier'
).split(' ');

/** Bodies that cost more than they should, and the status that answers each. */
const heavy: Readonly<Record<string, [status: number, text: () => string]>> = {
  'arrays 100,000 deep in an unknown field': [413, () => `{"model":"m","x":${deepArray}}`],
  'objects 100,000 deep in an unknown field': [413, () => `{"model":"m","x":${deepObject}}`],
  'arrays as deep as the limit in an unknown field': [
    201,
    () => `{"model":"m","x":${deep('[', ']', limits.bodyDepthMax - 1)}}`,
  ],
  'arrays deeper than the limit in an unknown field': [
    413,
    () => `{"model":"m","x":${deep('[', ']', limits.bodyDepthMax)}}`,
  ],
  'arrays as deep as the limit as the body': [422, () => deep('[', ']', limits.bodyDepthMax)],
  'arrays 2,000,000 deep': [413, () => `{"model":"m","x":${deep('[', ']', 2_000_000)}}`],
  'arrays 100,000 deep as the body': [413, () => deepArray],
  'objects 100,000 deep as the body': [413, () => deepObject],
  'arrays that never close': [413, () => '['.repeat(200_000)],
  'objects that never close': [413, () => '{"a":'.repeat(100_000)],
  '4,000,000 arrays that never close': [413, () => '['.repeat(4_000_000)],
  '800,000 objects that never close': [413, () => '{"a":'.repeat(800_000)],
  '1,700,000 empty lists': [413, () => `{"model":"m","x":[${'[],'.repeat(1_700_000)}[]]}`],
  'arrays 100,000 deep in __proto__': [413, () => `{"model":"m","__proto__":${deepArray}}`],
  'a key name of 4 MB': [201, () => `{"model":"m","${'k'.repeat(4 * 1024 * 1024)}":1}`],
  'a key name of 4 MB of escapes': [201, () => `{"model":"m","${'\\u0000'.repeat(699_050)}":1}`],
  '200,000 keys in one object': [201, () => `{${manyKeys(200_000, (i) => `k${i}`)},"model":"m"}`],
  '200,000 keys that are numbers': [
    201,
    () => `{${manyKeys(200_000, (i) => `${(i * 7919) % 4_294_967}`)},"model":"m"}`,
  ],
  'one key 200,000 times': [201, () => `{${manyKeys(200_000, () => 'model')},"model":"m"}`],
  'one key 200,000 times, the last one bad': [
    422,
    () => `{"model":"m",${manyKeys(200_000, () => 'model')}}`,
  ],
  'a number of 4,000,000 digits': [201, () => `{"model":"m","x":${digits(4_000_000)}}`],
  'a cost of 4,000,000 digits': [422, () => `{"model":"m","cost_usd":${digits(4_000_000)}}`],
  'a cost of 4,000,000 decimals': [
    201,
    () => `{"model":"m","cost_usd":0.${'0'.repeat(4_000_000)}1}`,
  ],
  'a model of 4 MB': [422, () => `{"model":"${'m'.repeat(4 * 1024 * 1024)}"}`],
  'a status of 4 MB': [422, () => `{"model":"m","status":"${'s'.repeat(4 * 1024 * 1024)}"}`],
  '4 MB of spaces': [201, () => `{"model":"m"${' '.repeat(4 * 1024 * 1024)}}`],
};

describe('an expensive body gets a clear answer soon, and the service keeps running', () => {
  for (const [what, [status, text]] of Object.entries(heavy)) {
    test(`${what}: ${status}`, async () => {
      const before = await totalOf(service, team);
      const answer = await post(text());
      assert.equal(answer.status, status, answer.text.slice(0, 300));
      assert.ok(answer.text.length < 2_000, 'the answer is short');
      assert.equal(await totalOf(service, team), before + (status === 201 ? 1 : 0));
      await assertServes(service, team);
    });
  }
  for (const field of knownFields) {
    test(`arrays and objects as deep as the limit in ${field}: 422`, async () => {
      const depth = limits.bodyDepthMax - 1;
      for (const value of [deep('[', ']', depth), deep('{"a":', '}', depth)]) {
        const rest = field === 'model' ? '' : '"model":"m",';
        const answer = await post(`{${rest}"${field}":${value}}`);
        assert.equal(answer.status, 422);
        assert.deepEqual(
          answer.json.errors.map((error: { field: string }) => error.field),
          [field],
        );
      }
      await assertServes(service, team);
    });
  }
});

/** A batch of as many of these traces as it may hold, or of just one. */
const inBatch = (...items: string[]): string => `{"traces":[${items.join()}]}`;
const times = (count: number, item: string): string =>
  `{"traces":[${`${item},`.repeat(count - 1)}${item}]}`;

/** Batches that cost more than they should, the status that answers each, and how many traces they store. */
const heavyBatches: Readonly<Record<string, [status: number, stored: number, text: () => string]>> =
  {
    'items 100,000 deep in an unknown field': [
      413,
      0,
      () =>
        inBatch(
          `{"model":"m","x":${deepArray}}`,
          `{"model":"m","x":${deepObject}}`,
          '{"model":"m"}',
        ),
    ],
    'an item 1,000,000 deep, and one that is good': [
      413,
      0,
      () => inBatch(`{"model":"m","x":${deep('{"a":', '}', 1_000_000)}}`, '{"model":"m"}'),
    ],
    'arrays 100,000 deep in place of a trace': [413, 0, () => inBatch(deep('[', ']', 100_000))],
    'a hundred thousand items': [422, 0, () => times(100_000, '{}')],
    'a million items': [413, 0, () => times(1_000_000, '{}')],
    '1,000 items of which every field is wrong': [
      422,
      0,
      () => times(1000, `{${knownFields.map((field) => `"${field}":[]`).join()}}`),
    ],
    '1,000 items without a model': [422, 0, () => times(1000, `{"input":"${'x'.repeat(15_000)}"}`)],
    '1,000 items of 200 unknown fields': [
      201,
      1000,
      () => times(1000, `{"model":"m",${manyKeys(200, (i) => `k${i}`)}}`),
    ],
    'a list that is written 100,000 times': [
      201,
      1,
      () => `{${manyKeys(100_000, () => 'traces')},"traces":[{"model":"m"}]}`,
    ],
  };

describe('an expensive batch gets a clear answer soon, and the service keeps running', () => {
  for (const [what, [status, stored, text]] of Object.entries(heavyBatches)) {
    test(`${what}: ${status}`, async () => {
      const before = await totalOf(service, team);
      const body = text();
      const answer = await within(answerMsMax, what, () =>
        service.call(team.key, 'POST', '/traces/batch', body),
      );
      assert.equal(answer.status, status, answer.text.slice(0, 300));
      assert.ok(answer.text.length < 1_000_000, `the answer has ${answer.text.length} characters`);
      assert.equal(await totalOf(service, team), before + stored);
      await assertServes(service, team);
    });
  }
});

test('numbers beyond every range are refused, and numbers below all precision are zero', async () => {
  for (const field of ['prompt_tokens', 'completion_tokens', 'latency_ms', 'cost_usd']) {
    for (const huge of ['1e999', '-1e999', digits(309), `-${digits(309)}`, `${digits(400)}.5`]) {
      const answer = await post(`{"model":"m","${field}":${huge}}`);
      assert.equal(answer.status, 422, `${field} ${huge.slice(0, 20)}`);
      assert.ok(!answer.text.includes('999'), 'the value is not repeated');
    }
    for (const small of [tiny, '1e-999', '0e999999999', `0.${'0'.repeat(5000)}`]) {
      const answer = await post(`{"model":"m","${field}":${small}}`);
      assert.deepEqual([answer.status, answer.json[field]], [201, 0], small.slice(0, 20));
    }
  }
  await assertServes(service, team);
});

test('a query of thousands of keys, or of one key again and again, is answered soon', async () => {
  const queries: [query: string, status: number][] = [
    [Array.from({ length: 1500 }, (_, i) => `k${i}=1`).join('&'), 422],
    ['x=1&'.repeat(3000), 422],
    ['page=1&'.repeat(2000), 422],
    ['page=2&limit=1&page=1', 422],
    ['page[]=2&page[0]=2&PAGE=2', 422],
    ['&'.repeat(12_000), 200],
    ['%'.repeat(12_000), 422],
    ['='.repeat(12_000), 422],
    [`page=${digits(12_000)}`, 422],
    [`omit=${'input,'.repeat(2000)}`, 422],
  ];
  for (const [query, status] of queries) {
    const answer = await within(answerMsMax, query.slice(0, 20), () =>
      send(service.url, {
        path: `/traces?${query}`,
        headers: bearer(team.key),
      }),
    );
    assert.equal(answer.status, status, query.slice(0, 40));
    if (status === 200) assert.equal(answer.json.page, 1);
  }
  await assertServes(service, team);
});

test('after all of this verify finds no difference', async () => {
  await assertVerified(service, [[team, await totalOf(service, team)]]);
});
