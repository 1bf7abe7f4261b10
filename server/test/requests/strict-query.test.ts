import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { generateKey } from '../../src/core/api-key.ts';
import { limits } from '../../src/limits.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertFieldError, assertProblem } from '../http/helpers.ts';

let service: TestService;
let team: KeyHolder;
let traceId: string;

before(async () => {
  service = await startTestService();
  team = await service.keyFor();
  traceId = (await service.call(team.key, 'POST', '/traces', { model: 'm' })).json.id;
});
after(() => service.stop());

function get(path: string, key: string | null = team.key): Promise<Answer> {
  return service.call(key, 'GET', path);
}

interface Parameter {
  name: string;
  in: string;
  schema: { type?: string };
}

interface OpenApi {
  paths: Record<string, { get?: { parameters?: Parameter[] } }>;
}

/** Filters may be repeated. */
const repeatable = new Set<string>();

/** Every documented GET endpoint with the names of its parameters, and the undocumented ones. */
async function endpoints(): Promise<[path: string, parameters: string[]][]> {
  const { paths } = (await get('/openapi.json')).json as OpenApi;
  const documented = Object.entries(paths).flatMap(([path, { get: operation }]) => {
    if (!operation) return [];
    const inQuery = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
    for (const { name, schema } of inQuery) if (schema.type === 'array') repeatable.add(name);
    return [
      [path.replace('{trace_id}', traceId), inQuery.map(({ name }) => name)] as [string, string[]],
    ];
  });
  assert.ok(documented.length >= 6, 'the document lists the endpoints');
  return [...documented, ['/openapi.json', []], ['/session', []]];
}

test('every GET endpoint refuses an unknown parameter and lists the ones that it has', async () => {
  for (const [path, parameters] of await endpoints()) {
    const message = assertFieldError(await get(`${path}?color=red`), 'color');
    assert.equal(
      message,
      parameters.length === 0
        ? 'is not a known parameter; this endpoint has none'
        : `is not a known parameter; this endpoint accepts ${parameters.join(', ')}`,
      path,
    );
    assert.equal((await service.call(team.key, 'HEAD', `${path}?color=red`)).status, 422, path);
  }
});

test('every GET endpoint refuses a parameter that is given twice, except filters', async () => {
  for (const [path, parameters] of await endpoints()) {
    for (const name of parameters.filter((parameter) => !repeatable.has(parameter))) {
      const answer = await get(`${path}?${name}=1&${name}=1`);
      assertFieldError(answer, name, 'must appear only once');
    }
  }
  assert.ok(repeatable.size > 8);
});

test('a filter that does not exist never returns every trace', async () => {
  const message = assertFieldError(await get('/traces?Model=x'), 'Model');
  assert.match(message, /^is not a known parameter; this endpoint accepts .*\bpage, limit, omit,/);
});

test('a write is stored whatever its query', async () => {
  const { key } = await service.keyFor();
  const trace = { model: 'm' };
  const single = await service.call(key, 'POST', '/traces?color=red', trace);
  const batch = await service.call(key, 'POST', '/traces/batch?color=red', { traces: [trace] });
  assert.deepEqual([single.status, batch.status], [201, 201]);
  assert.equal((await get('/traces', key)).json.total, 2);
});

test('unknown, repeated and invalid parameters are reported together', async () => {
  const answer = await get('/traces?mode=x&page=0&limit=1&limit=2&user=y&user=z');
  assertProblem(answer, 'invalid_input');
  assert.deepEqual(
    answer.json.errors.map(({ field, message }: { field: string; message: string }) => [
      field,
      message.split(' ').slice(0, 3).join(' '),
    ]),
    [
      ['mode', 'is not a'],
      ['user', 'is not a'],
      ['page', 'must be a'],
      ['limit', 'must appear only'],
    ],
  );
});

describe('names that are not plain are refused without being repeated', () => {
  const names = {
    'an API key': generateKey(),
    'a long name': 'x'.repeat(limits.envKeyCharsMin),
    'a sentence': 'my%20secret',
    'an empty name': '',
    'a broken percent code': '%ZZ',
  };
  for (const [what, name] of Object.entries(names)) {
    test(what, async () => {
      const answer = await get(`/traces?${name}=1`);
      assertFieldError(answer, 'query');
      if (name !== '')
        assert.ok(!answer.text.includes(decodeURIComponent(name.replace('%ZZ', 'ZZ'))));
    });
  }
  for (const name of ['__proto__', 'constructor', 'hasOwnProperty', 'Page', 'filter[model]']) {
    test(`a plain name is repeated: ${name}`, async () => {
      assertFieldError(await get(`/traces?${encodeURIComponent(name)}=1`), name);
    });
  }
});

test('a query of thousands of unknown parameters gets a short reply', async () => {
  const query = Array.from({ length: 2_000 }, (_, i) => `p${i}=`).join('&');
  const answer = await get(`/traces?${query}`);
  assertProblem(answer, 'invalid_input');
  assert.equal(answer.json.errors.length, limits.queryErrorsMax);
});

test('a key is checked before the query', async () => {
  assertProblem(await get('/traces?color=red', null), 'key_missing');
  assertProblem(await get('/traces?color=red', generateKey()), 'key_unknown');
});

test('probes and the page answer with any query', async () => {
  for (const path of ['/healthz', '/readyz']) {
    assert.equal((await get(`${path}?from=balancer&from=twice`, null)).status, 200, path);
  }
  const [bare, tagged] = [await get('/', null), await get('/?utm_source=mail', null)];
  assert.equal(tagged.status, bare.status);
  assert.equal((await get('/assets/none.js?v=1', null)).status, 404);
});

test('an empty query is no parameter', async () => {
  assert.equal((await get('/traces?')).status, 200);
  assert.equal((await get('/analytics/overview?')).status, 200);
});
