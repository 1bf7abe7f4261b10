import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatTimestamp } from '../../src/core/clock.ts';
import { fieldNames, traceFields } from '../../src/core/trace-fields.ts';
import type { FieldKind, TraceDraft } from '../../src/core/trace-fields.ts';
import { Failure } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import type { BodyEncoding, BodyKind, DecodeJob } from '../../src/http/decoding/decode-job.ts';
import { decode } from '../../src/http/decoding/decode.ts';
import { readPart } from '../../src/http/decoding/decoded-parts.ts';
import { callTable } from '../../src/http/protocols/call-table.ts';
import { TraceBody, TraceInputSchema } from '../../src/http/trace-schemas.ts';
import { openValidators } from '../../src/http/validators.ts';
import type { Validator } from '../../src/http/validators.ts';
import { payloadsIn } from '../../src/store/payload-blob.ts';
import { unpackPayloads } from '../../src/store/payload.ts';
import {
  chatAttributes,
  encode,
  logsRequest,
  otlpValue,
  spanOf,
  spansRequest,
  toProtobuf,
} from '../support/otlp.ts';
import type { OtlpLog, OtlpSpan, OtlpValue, Plain } from '../support/otlp.ts';

/** Whatever way a value takes, what is stored obeys the rules of `POST /traces`, or the call is rejected with a reason. */

const nowUs = Date.UTC(2026, 10, 4, 12) * 1000;
const compile = openValidators(
  () => nowUs,
  () => ({ TraceInput: TraceInputSchema }),
);
const validators = new Map<object, Validator>();
const validatorOf = (schema: object): Validator =>
  validators.getOrInsertComputed(schema, () => compile({ schema }));

interface Outcome {
  drafts: TraceDraft[];
  reasons: string[];
  /** Signals that are not calls. */
  skipped: number;
}

async function outcomeOf(kind: BodyKind, body: Buffer, encoding: BodyEncoding): Promise<Outcome> {
  const job: DecodeJob = {
    kind,
    encoding,
    coding: 'identity',
    bytes: new Uint8Array(body),
    bodyBytesMax: limits.batchBodyBytesMax,
    traceBytesMax: limits.bodyBytesMax,
    teamId: 't',
    nowUs,
    basePath: '',
    omit: [],
    hashPrefix: null,
    prices: null,
  };
  try {
    const { parts, signals, rejected } = await decode(job, { validatorOf, price: async () => {} });
    const drafts = parts.flatMap((part) => {
      const payloads = payloadsIn(part.payloads);
      return readPart(part).drafts.map((draft, i) => {
        return { ...draft, ...unpackPayloads(payloads[i] ?? assert.fail('no payloads')) };
      });
    });
    const reasons = signals?.reasons.map(([reason]) => reason) ?? [];
    const skipped = signals?.skipped ?? 0;
    return { drafts, reasons: rejected === '[]' ? reasons : [rejected], skipped };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { errors = [], say = error.code } = error.details;
    const fields = errors.map(({ field, message }) => `${field} ${message}`);
    return { drafts: [], reasons: [fields.join('; ') || say], skipped: 0 };
  }
}

/** A stored draft as a caller would send it. */
function assertAllowed({ cost_source: _source, ...draft }: TraceDraft, where: string): void {
  const { started_at: at, metadata } = draft;
  const sent = {
    ...draft,
    started_at: at === null ? null : formatTimestamp(at),
    metadata: metadata === null ? null : (JSON.parse(metadata) as unknown),
  };
  const isTrace = validatorOf(TraceBody);
  const problem = isTrace(sent) ? null : JSON.stringify(isTrace.errors).slice(0, 300);
  assert.equal(problem, null, where);
  for (const value of Object.values(draft)) {
    if (typeof value === 'string') assert.ok(value.isWellFormed(), where);
  }
}

const long = 'x'.repeat(limits.labelCharsMax + 1);
const texts = [
  long,
  'x'.repeat(10_000),
  '\u0000',
  'a\u0085b',
  'a\nb',
  '\ud800',
  '\udfff'.repeat(300),
  ' ',
  '😀'.repeat(256),
];
const numbers = [
  -1,
  -0.5,
  1.5,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  1e300,
  -0,
  Number.NaN,
  Infinity,
  -Infinity,
];
const mixed: Plain[] = [
  ...texts,
  ...numbers,
  ...numbers.map(String),
  '',
  'abc',
  '0x7fffffff1',
  true,
  [],
  ['a'],
  { a: 1 },
  { a: long },
];

const kindsByField = new Map(fieldNames.map((name) => [name, traceFields[name].kind]));
const otherwiseBad: Partial<Record<FieldKind, unknown[]>> = {
  time: [
    '1999-12-31T23:59:59Z',
    '2026-11-05T12:00:01Z',
    '9999-01-01T00:00:00Z',
    '2026-02-30T00:00:00Z',
    'yesterday',
  ],
  metadata: [
    Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, 'v'])),
    { ['x'.repeat(65)]: 'v' },
    { n: long },
    { '': 'v' },
    { '\ud800': 'v' },
    { 'a\nb': 'v' },
    { n: 1 },
  ],
};

/** Counts that contradict each other. */
const contradictions: readonly Record<string, number>[] = [
  { prompt_tokens: 5, cache_read_tokens: 6 },
  { prompt_tokens: 5, cache_read_tokens: 4, cache_write_tokens: 2 },
  { completion_tokens: 5, reasoning_tokens: 6 },
  { prompt_tokens: 2 ** 31 - 1, cache_read_tokens: 2 ** 31 - 1, cache_write_tokens: 2 ** 31 - 1 },
];

async function assertEach(
  cases: Iterable<[where: string, body: Buffer]>,
  kind: BodyKind,
  encoding: BodyEncoding = 'json',
): Promise<void> {
  let stored = 0;
  for (const [where, body] of cases) {
    const { drafts, reasons, skipped } = await outcomeOf(kind, body, encoding);
    stored += drafts.length;
    assert.equal(drafts.length + reasons.length + skipped, 1, where);
    for (const reason of reasons) assert.match(reason, /\w/, where);
    for (const draft of drafts) assertAllowed(draft, where);
  }
  assert.ok(stored > 100, 'hardly anything was tried');
}

const shown = (value: unknown): string => String(JSON.stringify(value)).slice(0, 60);

describe('POST /traces', () => {
  function* bodies(wrap: (trace: object) => unknown): Generator<[string, Buffer]> {
    for (const [name, kind] of kindsByField) {
      for (const value of [...mixed, ...(otherwiseBad[kind] ?? [])]) {
        const text = JSON.stringify(wrap({ model: 'm', [name]: value }));
        yield [`${name}: ${shown(value)}`, Buffer.from(text)];
      }
    }
    for (const counts of contradictions) {
      yield [shown(counts), Buffer.from(JSON.stringify(wrap({ model: 'm', ...counts })))];
    }
  }

  test('a single trace', () =>
    assertEach(
      bodies((trace) => trace),
      'trace',
    ));
  test('a batch', () =>
    assertEach(
      bodies((trace) => ({ traces: [trace] })),
      'batch',
    ));
});

const time = (us: bigint): string => String(us * 1000n);
const start = BigInt(nowUs) - 60_000_000n;
const timed = { startTimeUnixNano: time(start), endTimeUnixNano: time(start + 1_000_000n) };

const badTimes = [
  '1',
  '999',
  '1000',
  '946684799999999999',
  time(BigInt(nowUs) + 86_400_000_001n),
  '18446744073709551615',
];
const badIds = ['ab'.repeat(33), 'ab'.repeat(5000), '00'.repeat(5000), '0', 'zz'];

const rows = Object.entries(callTable) as [string, readonly string[]][];

function* attributes(): Generator<[string, { key: string; value: OtlpValue }[]]> {
  const base = (own: Readonly<Record<string, Plain>> = {}) =>
    Object.entries(chatAttributes(own)).map(([key, value]) => ({ key, value: otlpValue(value) }));
  for (const [, names] of rows) {
    for (const name of names) {
      for (const value of mixed) {
        const others = base().filter(({ key }) => key !== name);
        yield [`${name}: ${shown(value)}`, [...others, { key: name, value: otlpValue(value) }]];
      }
      const text = { doubleValue: 'NaN' } as unknown as OtlpValue;
      yield [`${name}: "NaN"`, [...base(), { key: name, value: text }]];
    }
  }
  for (const counts of contradictions) {
    const own = Object.entries(counts).map(([name, value]) => [`tracetally.${name}`, value]);
    yield [shown(counts), base(Object.fromEntries(own))];
  }
}

function* spans(): Generator<[string, OtlpSpan]> {
  for (const [where, list] of attributes()) {
    yield [where, { ...spanOf(timed), attributes: list }];
  }
  for (const value of badTimes) {
    yield [`start: ${value}`, spanOf({ ...timed, startTimeUnixNano: value })];
    yield [`end: ${value}`, spanOf({ ...timed, endTimeUnixNano: value })];
  }
  for (const value of badIds) {
    yield [`trace id: ${shown(value)}`, spanOf({ ...timed, traceId: value })];
    yield [`span id: ${shown(value)}`, spanOf({ ...timed, spanId: value, parentSpanId: value })];
  }
  for (const value of texts) {
    const event = {
      timeUnixNano: timed.startTimeUnixNano,
      name: 'exception',
      attributes: ['type', 'message'].map((key) => ({
        key: `exception.${key}`,
        value: otlpValue(value),
      })),
    };
    yield [
      `exception: ${shown(value)}`,
      spanOf({ ...timed, status: { code: 2 }, events: [event] }),
    ];
    yield [`status: ${shown(value)}`, spanOf({ ...timed, status: { code: 2, message: value } })];
  }
}

function* logs(): Generator<[string, OtlpLog]> {
  const log = { timeUnixNano: time(start), eventName: 'gemini_cli.api_response' };
  for (const [where, list] of attributes()) yield [where, { ...log, attributes: list }];
  const [, list = []] = attributes().next().value ?? [];
  for (const value of badTimes) {
    yield [`time: ${value}`, { ...log, timeUnixNano: value, attributes: list }];
  }
  // The time of a log record is the end of the call.
  const longCall = { key: 'tracetally.latency_ms', value: otlpValue(2 ** 31 - 1) };
  const early = { ...log, timeUnixNano: '946684800000000000', attributes: [...list, longCall] };
  yield ['a call that began before 2000', early];
  for (const value of badIds) {
    yield [`ids: ${shown(value)}`, { ...log, traceId: value, spanId: value, attributes: list }];
  }
}

for (const encoding of ['json', 'protobuf'] as const) {
  describe(`OTLP as ${encoding}`, () => {
    test('spans', () =>
      assertEach(
        spans().map(([where, span]) => [where, encode(encoding, spansRequest([span]))]),
        'span',
        encoding,
      ));

    test('attributes of the resource', () =>
      assertEach(
        attributes().map(([where, list]) => {
          const request = spansRequest([spanOf(timed)]);
          const [group = assert.fail()] = request.resourceSpans;
          group.resource.attributes = list;
          return [where, encode(encoding, request)];
        }),
        'span',
        encoding,
      ));

    test('log records', () =>
      assertEach(
        logs().map(([where, log]) => [where, encode(encoding, logsRequest([log]))]),
        'log',
        encoding,
      ));
  });
}

describe('LiteLLM', () => {
  const payload = {
    id: 'chatcmpl-000000000001',
    call_type: 'acompletion',
    status: 'success',
    model: 'm',
    prompt_tokens: 10,
    completion_tokens: 5,
    startTime: nowUs / 1_000_000 - 60,
    endTime: nowUs / 1_000_000 - 59,
  };
  const prefix = 'standard_logging.';

  function withValue(path: readonly string[], value: unknown): Record<string, unknown> {
    const [first = '', ...rest] = path;
    return { [first]: rest.length === 0 ? value : withValue(rest, value) };
  }

  function* payloads(): Generator<[string, Buffer]> {
    const names = rows.flatMap(([, list]) => list.filter((name) => name.startsWith(prefix)));
    for (const name of names) {
      for (const value of mixed) {
        const own = withValue(name.slice(prefix.length).split('.'), value);
        yield [`${name}: ${shown(value)}`, Buffer.from(JSON.stringify({ ...payload, ...own }))];
      }
    }
    for (const name of ['startTime', 'endTime', 'completionStartTime']) {
      for (const value of [
        '1e-9',
        '1e-7',
        '1',
        '-1',
        '1e400',
        '1e15',
        '946684799',
        '"2026"',
        'null',
      ]) {
        const text = JSON.stringify({ ...payload, stream: true, [name]: 'VALUE' });
        yield [`${name}: ${value}`, Buffer.from(text.replace('"VALUE"', value))];
      }
    }
  }

  test('payloads', () => assertEach(payloads(), 'litellm'));
});

test('a time out of range is rejected with a reason that names the field and the range', async () => {
  for (const encoding of ['json', 'protobuf'] as const) {
    for (const value of badTimes) {
      const span = spanOf({ ...timed, startTimeUnixNano: value });
      const { reasons } = await outcomeOf('span', encode(encoding, spansRequest([span])), encoding);
      const range = "must be from 2000-01-01 to 24 hours ahead of the server's clock";
      assert.deepEqual(reasons, [`startTimeUnixNano ${range}`], value);
      const log = {
        timeUnixNano: value,
        eventName: 'gemini_cli.api_response',
        attributes: span.attributes,
      };
      const ofLog = await outcomeOf('log', encode(encoding, logsRequest([log])), encoding);
      assert.deepEqual(ofLog.reasons, [`timeUnixNano ${range}`], value);
    }
  }
});

test('a span without times is stored without a time of its own', async () => {
  const span = spanOf({ startTimeUnixNano: '0', endTimeUnixNano: '0' });
  const { drafts } = await outcomeOf('span', toProtobuf(spansRequest([span])), 'protobuf');
  assert.deepEqual([drafts[0]?.started_at, drafts[0]?.latency_ms], [null, null]);
});

test('ids of up to 32 bytes are kept, longer ones are as if they were not set', async () => {
  const runs: [traceId: string, runId: string | null][] = [
    ['ab'.repeat(16), 'ab'.repeat(16)],
    ['ab'.repeat(32), 'ab'.repeat(32)],
    ['ab'.repeat(33), null],
    ['ab'.repeat(5000), null],
  ];
  for (const encoding of ['json', 'protobuf'] as const) {
    for (const [traceId, runId] of runs) {
      const body = encode(encoding, spansRequest([spanOf({ ...timed, traceId })]));
      const { drafts } = await outcomeOf('span', body, encoding);
      assert.equal(drafts[0]?.run_id, runId);
    }
  }
});
