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
  for (const model of ['first', 'second', 'third']) {
    const texts = { input: 'asked', output: 'answered', error_message: 'failed' };
    const trace = { model, ...texts, metadata: { tier: 'gold' } };
    assert.equal((await service.call(team.key, 'POST', '/traces', trace)).status, 201);
  }
});
after(() => service.stop());

function list(query: string): Promise<Answer> {
  return service.call(team.key, 'GET', `/traces${query}`);
}

const noPositiveInteger = [
  '',
  '9'.repeat(400),
  ...'0 -1 1e3 %2B3 +3 0x10 1.5 1.0 01 1234567890'.split(' '),
  ...'%201 1%20 +1 1+ 1%0A 1%00 1,2 one null NaN %D9%A1 %ZZ'.split(' '),
];

for (const field of ['page', 'limit']) {
  describe(`${field} must be a positive integer`, () => {
    for (const written of noPositiveInteger) {
      test(`not "${written.slice(0, 20)}"`, async () => {
        const message = assertFieldError(await list(`?${field}=${written}`), field);
        assert.match(message, /^must be a positive integer with at most 9 digits/);
      });
    }
    test('not two of them', async () => {
      for (const query of [`?${field}=1&${field}=1`, `?${field}=1&${field}=2`]) {
        assertFieldError(await list(query), field, 'must appear only once');
      }
    });
    test('not a name without a value', async () => {
      assertFieldError(await list(`?${field}`), field);
    });
  });
}

test('bad values of page, limit and omit are reported together', async () => {
  const answer = await list('?page=0&limit=0&omit=model');
  assertProblem(answer, 'invalid_input');
  const fields = answer.json.errors.map(({ field }: { field: string }) => field);
  assert.deepEqual(fields.sort(), ['limit', 'omit', 'page']);
});

describe('a valid page and limit are used and returned', () => {
  const rows: [query: string, page: number, limit: number, models: string[]][] = [
    ['', 1, 20, ['third', 'second', 'first']],
    ['?page=1', 1, 20, ['third', 'second', 'first']],
    ['?limit=2', 1, 2, ['third', 'second']],
    ['?limit=2&page=2', 2, 2, ['first']],
    ['?limit=100', 1, 100, ['third', 'second', 'first']],
    ['?limit=101', 1, 100, ['third', 'second', 'first']],
    ['?limit=999999999', 1, 100, ['third', 'second', 'first']],
    ['?limit=2&page=3', 3, 2, []],
    ['?page=999999999', 999_999_999, 20, []],
    ['?page=999999999&limit=999999999', 999_999_999, 100, []],
  ];
  for (const [query, page, limit, models] of rows) {
    test(query === '' ? 'by default' : query, async () => {
      const answer = await list(query);
      assert.equal(answer.status, 200);
      assert.deepEqual(Object.keys(answer.json), ['traces', 'total', 'page', 'limit']);
      const { traces, ...rest } = answer.json;
      assert.deepEqual(rest, { total: 3, page, limit });
      assert.deepEqual(
        traces.map(({ model }: { model: string }) => model),
        models,
      );
    });
  }
});

test('preview_chars cuts the texts of a list but not metadata, and omit still leaves them out', async () => {
  const { json } = await list('?limit=1&preview_chars=3&omit=output');
  const [trace] = json.traces;
  assert.deepEqual([trace.model, trace.input, trace.error_message], ['third', 'ask', 'fai']);
  assert.deepEqual(trace.metadata, { tier: 'gold' });
  assert.ok(!('output' in trace));
  const { json: without } = await list('?limit=1&preview_chars=3&omit=metadata');
  assert.ok(!('metadata' in without.traces[0]));
});

for (const written of ['', '0', '-1', '1001', '1e2', 'all']) {
  test(`preview_chars must be an integer from 1 to 1,000, not "${written}"`, async () => {
    const message = assertFieldError(await list(`?preview_chars=${written}`), 'preview_chars');
    assert.equal(message, 'must be an integer from 1 to 1000');
  });
}

test('a list shows a trace as it is shown alone', async () => {
  const { traces } = (await list('')).json;
  assert.equal(traces.length, 3);
  for (const trace of traces) {
    const alone = await service.call(team.key, 'GET', `/traces/${trace.id}`);
    assert.equal(alone.text, JSON.stringify(trace));
  }
});

describe('payloads are left out on request', () => {
  const rows: [omit: string, fields: string[]][] = [
    ['input', ['input']],
    ['output', ['output']],
    ['input,output', ['input', 'output']],
    ['output,input', ['input', 'output']],
    ['input%2Coutput', ['input', 'output']],
    ['error_message', ['error_message']],
    ['input,error_message', ['input', 'error_message']],
    ['error_message,output', ['output', 'error_message']],
    ['input,output,error_message', ['input', 'output', 'error_message']],
    ['error_message,output,input', ['input', 'output', 'error_message']],
    ['output,error_message,input', ['input', 'output', 'error_message']],
    ['metadata', ['metadata']],
    ['metadata,input', ['input', 'metadata']],
  ];
  for (const [omit, fields] of rows) {
    test(omit, async () => {
      const [whole, less] = [(await list('')).json, (await list(`?omit=${omit}`)).json];
      assert.equal(less.traces.length, 3);
      for (const trace of whole.traces) for (const field of fields) delete trace[field];
      assert.deepEqual(less, whole);
    });
  }
  const bad = ['', 'model', 'errorMessage', 'INPUT', 'input,', ',input', 'input,,output'];
  const twice = ['input,input', 'input,output,input', 'error_message,error_message'];
  for (const omit of [...bad, ...twice, 'input%20', '%20input', 'input;output', 'inputoutput']) {
    test(`not "${omit}"`, async () => {
      const message = assertFieldError(await list(`?omit=${omit}`), 'omit');
      assert.equal(
        message,
        'must be one or more of "input", "output", "error_message", "metadata", each at most once, separated by commas',
      );
    });
  }
  test('not omit given twice', async () => {
    const answer = await list('?omit=input&omit=output');
    assertFieldError(answer, 'omit', 'must appear only once');
  });
});
