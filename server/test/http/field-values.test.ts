import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
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

/** Posts the text as it is, so that a test can write what JSON.stringify never would. */
function post(text: string, key = team.key): Promise<Answer> {
  return service.call(key, 'POST', '/traces', text);
}

/** Posts what must be accepted, and reads the same bytes back. */
async function record(text: string): Promise<Answer> {
  const created = await post(text);
  assert.equal(created.status, 201, `${text.slice(0, 200)} ${created.text.slice(0, 500)}`);
  const found = await service.call(team.key, 'GET', `/traces/${created.json.id}`);
  assert.equal(found.status, 200);
  assert.equal(found.text, created.text);
  const shown = Object.keys(created.json).filter((name) => !extraFields.includes(name));
  assert.deepEqual(shown, replyFields);
  return created;
}

const replyFields = (
  'id team_id model input output prompt_tokens completion_tokens latency_ms cost_usd status ' +
  'error_message feature_name user_identifier created_at'
).split(' ');

/** A trace in which one field is written as this JSON text. */
function traceWith(field: string, written: string): string {
  return field === 'model' ? `{"model":${written}}` : `{"model":"m","${field}":${written}}`;
}

const counts = ['prompt_tokens', 'completion_tokens', 'latency_ms'];
const labels = ['feature_name', 'user_identifier'];
/** Shown only if they were sent. */
const extraLabels = [
  'response_model',
  'environment',
  'provider',
  'session_id',
  'run_id',
  'error_type',
];
const extraCounts = ['cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens', 'ttft_ms'];
const extraFields = [...extraLabels, ...extraCounts, 'started_at', 'metadata'];
const payloads = ['input', 'output', 'error_message'];

const noInteger = ['"12"', '""', '12.5', '0.1', 'true', 'false', '[]', '[12]', '{}', '1e400'];
const noNumber = ['"0.25"', '""', 'true', 'false', '[]', '[0.25]', '{}', '1e400', '-1e400'];
const noText = ['12', '12.5', 'true', 'false', '[]', '["text"]', '{}', '{"text":"text"}'];
const tooLong = ['a'.repeat(256), '😀'.repeat(256), 'e\u0301'.repeat(128)];
const controls = ['\u0000', '\u001f', '\u007f', '\u0085', '\n', '\u009f'];
const noLabel = {
  'must not be empty': ['""'],
  'must be at most 255 characters long': tooLong.map((text) => JSON.stringify(text)),
  'must not contain control characters': controls.map((c) => JSON.stringify(`be${c}fore`)),
};

interface BadValues {
  fields: readonly string[];
  /** What is said, and of which values, each as it is written in JSON. */
  said: Readonly<Record<string, readonly string[]>>;
}

const badValues: readonly BadValues[] = [
  {
    fields: [...counts, ...extraCounts],
    said: {
      'must be an integer or null': noInteger,
      'must be at least 0': ['-1', '-2147483648', '-1e300'],
      'must be at most 2147483647': ['2147483648', '1e10', '9007199254740993'],
    },
  },
  {
    fields: ['cost_usd'],
    said: {
      'must be a finite number or null': noNumber,
      'must be at least 0': ['-1', '-0.000001', '-5e-324'],
      'must be at most 1000000': ['1000000.0000001', '1e300'],
    },
  },
  {
    fields: ['status'],
    said: {
      'must be a string or null': noText,
      'must be one of "success", "error"': ['"ok"', '""', '"SUCCESS"', '"success "', '"null"'],
    },
  },
  { fields: payloads, said: { 'must be a string or null': noText } },
  {
    fields: [...labels, ...extraLabels],
    said: { 'must be a string or null': noText, ...noLabel },
  },
  {
    fields: ['started_at'],
    said: {
      'must be a string or null': noText,
      'must be an RFC 3339 time, such as 2026-11-04T09:30:00Z': [
        '""',
        '"tomorrow"',
        '"2026-11-03"',
        '"2026-11-03T09:30:00"',
        '"2026-11-31T09:30:00Z"',
      ],
      'must not be before 2000-01-01': ['"1999-12-31T23:59:59.999999Z"'],
      "must not be more than 24 hours ahead of the server's clock": ['"2199-01-01T00:00:00Z"'],
    },
  },
  {
    fields: ['metadata'],
    said: {
      'must be a JSON object or null': ['"{}"', '12', 'true', '[]', '["text"]'],
      'must have only strings as values': ['{"tier":12}', '{"tier":null}', '{"tier":["gold"]}'],
      'must have at most 16 entries': [
        JSON.stringify(Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, '']))),
      ],
      'must not have an entry without a name': ['{"":"gold"}'],
      'must have names of at most 64 characters': [`{"${'n'.repeat(65)}":"gold"}`],
      'must not have control characters in a name': [String.raw`{"ti\u0000er":"gold"}`],
      'must have values of at most 255 characters': [`{"tier":"${'g'.repeat(256)}"}`],
    },
  },
  { fields: ['model'], said: { 'must be a string': [...noText, 'null'], ...noLabel } },
];

describe('a bad value is refused under the name of its field, and is not repeated', () => {
  for (const { fields, said } of badValues) {
    for (const field of fields) {
      for (const [message, values] of Object.entries(said)) {
        test(`${field} ${message}`, async () => {
          for (const written of values) {
            const answer = await post(traceWith(field, written));
            const sentence = assertFieldError(answer, field, message);
            const value: unknown = JSON.parse(written);
            const told = `${sentence} ${answer.json.detail}`;
            if (written !== 'null') assert.ok(!told.includes(written), written);
            if (typeof value === 'string' && value !== '') assert.ok(!told.includes(value));
          }
          assert.ok(values.length > 0);
        });
      }
    }
  }
  test('every field of a trace is in this table', () => {
    const assigned = ['id', 'team_id', 'created_at'];
    const covered = badValues.flatMap(({ fields }) => fields);
    assert.deepEqual([...covered, ...assigned].sort(), [...replyFields, ...extraFields].sort());
  });
});

/** Values as they are written, and as they come back; `undefined` for a field that is left out. */
type GoodValues = readonly [written: string | undefined, returned: unknown][];

const absent: GoodValues = [
  ['null', null],
  [undefined, null],
];
/** The same for a field that is shown only if it was sent. */
const left: GoodValues = absent.map(([written]) => [written, undefined]);
const asSent = (texts: readonly string[]): GoodValues =>
  texts.map((text) => [JSON.stringify(text), text]);
const goodLabels = asSent([
  'a',
  'a'.repeat(255),
  '😀'.repeat(255),
  ' ',
  '\u00a0',
  '<b>',
  '"',
  'null',
]);

const goodValues: Readonly<Record<string, GoodValues>> = {
  ...Object.fromEntries(
    counts.map((field) => {
      const written = ['0', '-0', '1', '1.0', '1e0', '10e-1', '2147483647', '2147483647.0'];
      const numbers: GoodValues = written.map((text) => [text, Number(text) + 0]);
      return [field, [...numbers, ...absent]];
    }),
  ),
  cost_usd: [
    ...['0', '-0', '1000000', '1e6', '0.1', '0.30000000000000004', '1e-12', '5e-324'].map(
      (text): [string, number] => [text, Number(text) + 0],
    ),
    ...absent,
  ],
  status: [...asSent(['success', 'error']), ['null', 'success'], [undefined, 'success']],
  ...Object.fromEntries(labels.map((field) => [field, [...goodLabels, ...absent]])),
  ...Object.fromEntries(extraLabels.map((field) => [field, [...goodLabels, ...left]])),
  ...Object.fromEntries(
    extraCounts.map((field) => {
      const written = ['0', '-0', '1', '1.0', '1e0', '2147483647'];
      const numbers: GoodValues = written.map((text) => [text, Number(text) + 0]);
      return [field, [...numbers, ...left]];
    }),
  ),
  started_at: [
    ['"2000-01-01T00:00:00Z"', '2000-01-01T00:00:00.000000Z'],
    ['"2026-03-01t00:15:00.1234567z"', '2026-03-01T00:15:00.123456Z'],
    ['"2026-03-01T00:15:00+05:45"', '2026-02-28T18:30:00.000000Z'],
    ...left,
  ],
  metadata: [
    ...['{}', '{"tier":"gold","a b":"","😀":"line\\nbreak"}'].map((text): [string, unknown] => [
      text,
      JSON.parse(text),
    ]),
    [String.raw`{"__proto__":"x","tier":"\ud800"}`, { tier: '\ufffd' }],
    ...left,
  ],
  ...Object.fromEntries(
    payloads.map((field) => {
      const texts = ['', ' ', 'a\u0000b', '\u0000', '\r\n\u001f\u0085', '😀', '\ufeff', '\uffff'];
      return [field, [...asSent([...texts, 'long '.repeat(50_000)]), ...absent]];
    }),
  ),
  model: goodLabels,
};

describe('a good value is accepted and comes back the same from POST and GET', () => {
  for (const [field, values] of Object.entries(goodValues)) {
    test(field, async () => {
      for (const [written, returned] of values) {
        const text = written === undefined ? '{"model":"m"}' : traceWith(field, written);
        assert.deepEqual((await record(text)).json[field], returned, text.slice(0, 80));
      }
      assert.ok(values.length >= 4);
    });
  }
  test('every field that can be sent is in this table', () => {
    const fields = badValues.flatMap(({ fields }) => fields);
    assert.deepEqual(Object.keys(goodValues).sort(), fields.sort());
  });
  test('a trace with every field at once', async () => {
    const short = { prompt_tokens: 1, completion_tokens: 2, latency_ms: 3, cost_usd: 0.25 };
    const labelled = { feature_name: 'f', user_identifier: 'u', status: 'error' };
    const texts = { model: 'm', input: 'in', output: 'out', error_message: 'no' };
    const sent = { ...short, ...labelled, ...texts };
    const { id, team_id, created_at, ...returned } = (await record(JSON.stringify(sent))).json;
    assert.deepEqual(returned, sent);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(team_id, team.teamId);
    assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });
});

test('several bad fields are all reported, each once', async () => {
  const bad = {
    input: 1,
    prompt_tokens: '1',
    cost_usd: -1,
    status: 'ok',
    feature_name: '\u0000'.repeat(300),
  };
  const answer = await post(JSON.stringify(bad));
  assertProblem(answer, 'invalid_input');
  const fields = answer.json.errors.map(({ field }: { field: string }) => field);
  assert.deepEqual(fields.sort(), ['model', ...Object.keys(bad)].sort());
});

test('a trace without a model is answered with "is required"', async () => {
  for (const text of ['{}', '{"input":"x"}', '{"Model":"m"}', '{"__proto__":{"model":"m"}}']) {
    assertFieldError(await post(text), 'model', 'is required');
  }
});

test('a body that is not an object is refused', async () => {
  for (const text of ['[]', '[{"model":"m"}]', 'null', '"model"', '12', 'true', '1e400']) {
    assertFieldError(await post(text), 'body', 'must be a JSON object');
  }
});

test('what the service assigns cannot be set by the body', async () => {
  const other = await service.keyFor();
  const id = '00000000-0000-7000-8000-000000000000';
  const created_at = '2001-01-01T00:00:00.000000Z';
  const wished = { id, team_id: other.teamId, created_at, seq: 1, timesUs: [1] };
  const { json } = await record(JSON.stringify({ model: 'm', ...wished }));
  assert.equal(json.team_id, team.teamId);
  assert.notEqual(json.id, id);
  assert.ok(Date.parse(json.created_at) >= Math.floor(performance.timeOrigin), json.created_at);
  const page = await service.call(other.key, 'GET', '/traces');
  assert.equal(page.json.total, 0);
});

test('unknown fields have no effect, whatever their names', async () => {
  const { json } = await record(
    '{"model":"m","extra":1,"":2,"toString":3,"__proto__":{"input":"x","isAdmin":true},' +
      '"constructor":{"prototype":{"output":"x"}},"prototype":{"status":"error"}}',
  );
  const expected = {
    ...(await record('{"model":"m"}')).json,
    id: json.id,
    created_at: json.created_at,
  };
  assert.deepEqual(json, expected);
  assert.equal(Reflect.get({}, 'isAdmin'), undefined);
  assert.equal(Reflect.get({}, 'output'), undefined);
});

test('an unknown field may be nested as deep as the limit, and no field 100,000 deep', async () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const nested = (depth: number): string => `${open.repeat(depth)}0${close.repeat(depth)}`;
    const deep = nested(limits.bodyDepthMax - 1);
    await record(`{"model":"m","extra":${deep}}`);
    assertFieldError(await post(`{"model":"m","input":${deep}}`), 'input');
    assertProblem(await post(`{"model":"m","extra":${nested(100_000)}}`), 'body_too_large');
  }
});

test('the status is error if there is an error message and no status is sent', async () => {
  const rows: [rest: string, status: string][] = [
    ['"error_message":"timeout"', 'error'],
    ['"error_message":" "', 'error'],
    ['"error_message":""', 'success'],
    ['"error_message":null', 'success'],
    ['"error_message":"timeout","status":null', 'error'],
    ['"error_message":"timeout","status":"success"', 'success'],
    ['"error_message":"","status":"error"', 'error'],
    ['"status":"error"', 'error'],
  ];
  for (const [rest, status] of rows) {
    assert.equal((await record(`{"model":"m",${rest}}`)).json.status, status, rest);
  }
});

test('if a field is written twice, the last value counts', async () => {
  const { json } = await record(
    '{"model":"first","latency_ms":"bad","latency_ms":7,"model":"last"}',
  );
  assert.equal(json.model, 'last');
  assert.equal(json.latency_ms, 7);
});

test('lone surrogates become U+FFFD, pairs stay', async () => {
  for (const field of ['model', ...labels, ...extraLabels, ...payloads]) {
    const { json } = await record(traceWith(field, String.raw`"a\ud800b\udc00\ud83d\ude00"`));
    assert.equal(json[field], 'a\ufffdb\ufffd😀', field);
  }
});
