import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { limits } from '../../src/limits.ts';
import { payloadNames } from '../../src/core/trace-fields.ts';
import { invalidItem, maybeIdempotencyKey, sentTrace } from '../model/arbitraries.ts';

/** Who asks. Two teams, the first with keys of all kinds; the last two have none that is known. */
export type Caller =
  | 'full'
  | 'ingest'
  | 'read'
  | 'brief'
  | 'revoked'
  | 'stranger'
  | 'unknown'
  | 'nobody';

/** One request. `{id:7}` in its path stands for the seventh id that was seen, `{ID:7}` for the same in capitals. */
export interface Asked {
  caller: Caller;
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array | null;
}

const caller = fc.oneof<fc.WeightedArbitrary<Caller>[]>(
  { weight: 10, arbitrary: fc.constant('full') },
  { weight: 4, arbitrary: fc.constant('stranger') },
  {
    weight: 3,
    arbitrary: fc.constantFrom('ingest', 'read', 'brief', 'revoked', 'unknown', 'nobody'),
  },
);

/** Texts that become much shorter when they are compressed, and texts that do not. */
const longText = fc.constantFrom(
  'long '.repeat(60_000),
  'é\u0000😀'.repeat(9_000),
  noise(1_024),
  noise(30_000),
);

/** Characters of three bytes each in no order, the same at each call. */
export function noise(chars: number): string {
  let state = 1;
  return Array.from({ length: chars }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return String.fromCharCode(0x4e00 + ((state >>> 4) % 20_000));
  }).join('');
}

const goodTrace = fc.oneof(
  { weight: 12, arbitrary: sentTrace.map((trace) => JSON.stringify(trace)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(sentTrace, fc.constantFrom('input', 'output', 'error_message'), longText)
      .map(([trace, field, text]) => JSON.stringify({ ...trace, [field]: text })),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      String.raw`{"model":"\ud800é😀","input":"a\u0000b\udfff","output":""}`,
      '{"model":"m","cost_usd":-0.0,"prompt_tokens":1e3,"latency_ms":-0,"completion_tokens":2.0}',
      '{"model":"m","cost_usd":0.30000000000000004,"status":null,"error_message":"timeout"}',
      '{"model":"m","cost_usd":5e-324,"feature_name":"\u00a0","user_identifier":"\ufeff"}',
      '{"model":"first","model":"last","extra":{"deep":[1]},"__proto__":{"input":"x"}}',
      // Names whose order differs between bytes, letters and UTF-16.
      '{"model":"B"}',
      '{"model":"a"}',
      '{"model":"_"}',
      '{"model":"é"}',
      '{"model":"\uffee"}',
    ),
  },
);

const badTrace = fc.oneof(
  invalidItem.map(({ item }) => JSON.stringify(item)),
  fc.constantFrom(
    '7',
    '"text"',
    '{"model":7}',
    String.raw`{"model":"a\u0000b"}`,
    '{"model":"m","latency_ms":2147483648,"cost_usd":-1,"status":"ok"}',
    '{"model":"m","cost_usd":1e400}',
    JSON.stringify({ model: 'x'.repeat(256) }),
  ),
);

const brokenBody = fc.constantFrom<(string | Uint8Array)[]>(
  '',
  '{',
  '{"model":"m"} x',
  Buffer.from([0x7b, 0x22, 0xff]),
);

const items = fc
  .array(fc.oneof({ weight: 3, arbitrary: goodTrace }, { weight: 1, arbitrary: badTrace }), {
    minLength: 1,
    maxLength: 5,
  })
  .map((texts) => `{"traces":[${texts.join()}]}`);

const oddBatch = fc.constantFrom(
  '{}',
  '{"traces":[]}',
  '{"traces":{}}',
  '[{"model":"m"}]',
  `{"traces":[${'null,'.repeat(1000)}null]}`,
);

type Packing = 'plain' | 'gzip' | 'broken' | 'bomb' | 'br';
const packing = fc.oneof<fc.WeightedArbitrary<Packing>[]>(
  { weight: 12, arbitrary: fc.constant('plain') },
  { weight: 5, arbitrary: fc.constant('gzip') },
  { weight: 2, arbitrary: fc.constantFrom('broken', 'bomb', 'br') },
);
/** Too large for one trace, and no JSON for a batch. */
const bomb = gzipSync(Buffer.alloc(limits.bodyBytesMax + 1, ' '));

function packed(body: string | Uint8Array, how: Packing): Pick<Asked, 'headers' | 'body'> {
  const gzip = { 'content-encoding': 'gzip' };
  switch (how) {
    case 'plain':
      return { headers: {}, body };
    case 'gzip':
      return { headers: gzip, body: gzipSync(body) };
    case 'broken':
      return { headers: gzip, body: gzipSync(body).subarray(0, -5) };
    case 'bomb':
      return { headers: gzip, body: bomb };
    case 'br':
      return { headers: { 'content-encoding': 'br' }, body };
  }
}

const contentType = fc.oneof(
  { weight: 20, arbitrary: fc.constant('application/json') },
  { weight: 1, arbitrary: fc.constantFrom('text/plain', 'application/json; charset=utf-8') },
);
const idempotencyKey = fc.oneof(
  { weight: 15, arbitrary: maybeIdempotencyKey },
  { weight: 1, arbitrary: fc.constantFrom('', 'a b', 'k'.repeat(256)) },
);

function post(paths: readonly string[], body: fc.Arbitrary<string | Uint8Array>) {
  return fc
    .record({
      caller,
      path: fc.constantFrom(...paths),
      body,
      how: packing,
      type: contentType,
      idempotency: idempotencyKey,
    })
    .map(({ caller, path, body, how, type, idempotency }): Asked => {
      const sent = packed(body, how);
      const headers = {
        'content-type': type,
        ...(idempotency === null ? {} : { 'idempotency-key': idempotency }),
        ...sent.headers,
      };
      return { caller, method: 'POST', path, headers, body: sent.body };
    });
}

const single = post(
  ['/traces'],
  fc.oneof(
    { weight: 12, arbitrary: goodTrace },
    { weight: 2, arbitrary: badTrace },
    { weight: 2, arbitrary: brokenBody },
  ),
);
const batch = post(
  [
    '',
    '',
    '?omit=input',
    '?omit=output',
    '?omit=input,output',
    '?omit=error_message',
    '?omit=model',
  ].map((query) => `/traces/batch${query}`),
  fc.oneof(
    { weight: 12, arbitrary: items },
    { weight: 1, arbitrary: oddBatch },
    { weight: 1, arbitrary: brokenBody },
  ),
);

const positive = (max: number) => fc.integer({ min: 1, max }).map(String);
const queryPart = (name: string, good: fc.Arbitrary<string>, bad: readonly string[]) =>
  fc
    .option(
      fc.oneof({ weight: 9, arbitrary: good }, { weight: 1, arbitrary: fc.constantFrom(...bad) }),
      { nil: null },
    )
    .map((value) => (value === null ? [] : [`${name}=${value}`]));
const noInteger = ['', '0', '-1', '1e3', '01', 'x', '1&page=2', '9999999999'];
const list = fc
  .tuple(
    queryPart('page', fc.oneof(positive(4), fc.constant('999999999')), noInteger),
    queryPart('limit', fc.oneof(positive(5), positive(150)), noInteger),
    queryPart('omit', fc.shuffledSubarray([...payloadNames], { minLength: 1 }).map(String), [
      '',
      'model',
      'input,',
      'input,input',
    ]),
  )
  .map((parts) => `/traces?${parts.flat().join('&')}`);
const one = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 30 }).map((n) => `/traces/{id:${n}}`) },
  { weight: 1, arbitrary: fc.nat({ max: 30 }).map((n) => `/traces/{ID:${n}}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/traces/00000000-0000-7000-8000-000000000000',
      '/traces/not-a-uuid',
      '/traces/%00',
      '/traces/%ZZ',
    ),
  },
);
const analytics = fc
  .constantFrom('overview', 'by-model', 'by-feature', 'daily')
  .map((name) => `/analytics/${name}`);

const readMethod = fc.oneof(
  { weight: 9, arbitrary: fc.constant('GET') },
  { weight: 1, arbitrary: fc.constant('HEAD') },
);
const read = fc
  .record({ caller, method: readMethod, path: fc.oneof(list, one, analytics) })
  .map((asked): Asked => ({ ...asked, headers: {}, body: null }));

const stray = fc
  .record({
    caller,
    method: fc.constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'),
    path: fc.constantFrom(
      '/healthz',
      '/readyz',
      '/openapi.json',
      '/traces',
      '/traces/batch',
      '/traces/{id:0}',
      '/analytics/daily',
      '/analytics/nothing',
      '/nowhere',
      '/traces/',
    ),
  })
  .map((asked): Asked => ({ ...asked, headers: {}, body: null }));

export const asked = fc.oneof(
  { weight: 6, arbitrary: single },
  { weight: 4, arbitrary: batch },
  { weight: 5, arbitrary: read },
  { weight: 1, arbitrary: stray },
);
