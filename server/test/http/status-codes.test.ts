import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import { generateKey } from '../../src/core/api-key.ts';
import { generateSignInCode } from '../../src/core/sign-in-code.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import { errorTable, fail } from '../../src/errors.ts';
import type { ErrorCode } from '../../src/errors.ts';
import type { WaitingBounds } from '../../src/ingest/waiting-budget.ts';
import { limits } from '../../src/limits.ts';
import type { Store } from '../../src/store/store.ts';
import { threadThat } from '../support/bad-thread.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

const { bearer, jsonType } = http;
const bodyBytesMax = 2048;
const missingId = '00000000-0000-7000-8000-000000000000';
const small = '{"model":"m"}';

let service: TestService;
let keys: Record<'full' | 'ingest' | 'read' | 'expired' | 'revoked' | 'stranger', KeyHolder>;
let traceId: string;
let slowAnswer: Promise<Answer>;

before(async () => {
  service = await startTestService({
    flags: { 'base-path': '/v1', 'body-limit': String(bodyBytesMax), 'trust-proxy': '127.0.0.1' },
  });
  // It takes seconds, so it goes on beside everything else.
  slowAnswer = http.sendBytes(service.url, 'GET /v1/healthz HTTP/1.1\r\nhost: half');
  keys = {
    full: await service.keyFor('codes'),
    ingest: await service.keyFor('codes', { scope: 'ingest' }),
    read: await service.keyFor('codes', { scope: 'read' }),
    expired: await service.keyFor('codes', { expiresAtUs: Date.now() * 1000 - 1 }),
    revoked: await service.keyFor('codes'),
    stranger: await service.keyFor('strangers'),
  };
  await service.beside.revokeKey(keys.revoked.keyId, Date.now() * 1000);
  traceId = (await service.call(keys.full.key, 'POST', '/traces', { model: 'm' })).json.id;
});
after(() => service.stop());

/** From its own address, so that no row uses up another's failed attempts. */
function ask({ headers, ...sent }: http.Sent): Promise<Answer> {
  return http.send(service.url, { ...sent, headers: { ...http.fromFreshAddress(), ...headers } });
}

function get(path: string, key = keys.full.key): Promise<Answer> {
  return ask({ path: `/v1${path}`, headers: bearer(key) });
}

function authorized(authorization: string): Promise<Answer> {
  return ask({ path: '/v1/traces', headers: { authorization } });
}

function post(body: string | Uint8Array, more: Partial<http.Sent> = {}): Promise<Answer> {
  const headers = { ...bearer(keys.full.key), ...(more.headers ?? jsonType) };
  return ask({ method: 'POST', path: '/v1/traces', body, ...more, headers });
}

function postAs(contentType: string): Promise<Answer> {
  return post(small, { headers: { 'content-type': contentType } });
}

function postNothing(path: string, headers: Record<string, string>): Promise<Answer> {
  return ask({
    method: 'POST',
    path: `/v1${path}`,
    headers: { ...bearer(keys.full.key), ...headers },
  });
}

function postBytes(...bytes: number[]): Promise<Answer> {
  return post(Buffer.concat([Buffer.from('{"model":"'), Buffer.from(bytes), Buffer.from('"}')]));
}

/** A trace whose body is of just this length. */
function bodyOf(bytes: number): string {
  const empty = JSON.stringify({ model: 'm', input: '' });
  return JSON.stringify({ model: 'm', input: 'x'.repeat(bytes - empty.length) });
}

/** A request, line by line. */
function raw(...lines: string[]): Promise<Answer> {
  return http.sendBytes(service.url, `${lines.join('\r\n')}\r\n\r\n`);
}

const getLine = 'GET /v1/healthz HTTP/1.1';
const postLine = 'POST /v1/traces HTTP/1.1';
const tooLong = 'x'.repeat(limits.headerBytesMax);

/** The answer of a service on which something is broken. */
async function broken(
  faults: Partial<Store>,
  path = '/traces',
  bounds?: WaitingBounds,
): Promise<Answer> {
  const ailing = await http.startBrokenService(faults, bounds);
  const write = { method: 'POST', body: small };
  const headers = { ...bearer(ailing.key), ...jsonType };
  try {
    return await http.send(ailing.url, { path, headers, ...(path === '/traces' ? write : {}) });
  } finally {
    await ailing.stop();
  }
}

function refusing(code: ErrorCode): Partial<Store> {
  return {
    append: async (all) =>
      all.map(() => ({ kind: 'failed', code, reason: 'planned by this test' })),
  };
}

const damagedTrace: Trace = {
  ...draftTrace({ model: 'm' }),
  id: '01890000-0000-7000-8000-000000000000',
  teamId: '01890000-0000-7000-8000-000000000001',
  createdAtUs: 1,
  damaged: ['input'],
};

const breaks = (): Promise<never> => Promise.reject(new Error('planned by this test'));

async function afterManyGuesses(): Promise<Answer> {
  const address = http.fromFreshAddress();
  const tryKey = (key: string): Promise<Answer> =>
    ask({ path: '/v1/traces', headers: { ...address, ...bearer(key) } });
  for (let i = 0; i < 30; i++) http.assertProblem(await tryKey(generateKey()), 'key_unknown');
  const refused = await tryKey(generateKey());
  assert.equal((await tryKey(keys.full.key)).status, 200, 'a valid key from the same address');
  http.assertProblem(await get('/traces', generateKey()), 'key_unknown');
  http.assertProblem(await tryKey(generateKey()), 'too_many_failed_attempts');
  return refused;
}

async function inEndlessLoop(): Promise<Answer> {
  const decoding = { module: threadThat('loops'), cpuMsMax: 100, wallMsMax: 60_000 };
  const stuck = await http.startBrokenService({}, limits, decoding);
  try {
    const headers = { ...http.bearer(stuck.key), ...jsonType };
    const body = JSON.stringify({ traces: [{ model: 'm' }] });
    return await http.send(stuck.url, { method: 'POST', path: '/traces/batch', headers, body });
  } finally {
    await stuck.stop();
  }
}

async function afterManyRequests(): Promise<Answer> {
  const limited = await startTestService({ flags: { 'rate-limit': '5' } });
  try {
    const [busy, other] = [await limited.keyFor('busy'), await limited.keyFor('busy')];
    const read = (key: string): Promise<Answer> => limited.call(key, 'GET', '/traces');
    for (let i = 0; i < 5; i++) assert.equal((await read(busy.key)).status, 200);
    const refused = await read(busy.key);
    assert.equal((await read(other.key)).status, 200, 'another key of the same team');
    return refused;
  } finally {
    await limited.stop();
  }
}

function signIn(
  body: { key?: string; code?: string },
  headers: Record<string, string> = {},
  path = '/v1/session',
): Promise<Answer> {
  return ask({
    method: 'POST',
    path,
    body: JSON.stringify(body),
    headers: { ...jsonType, ...headers },
  });
}

type Rows = Record<string, () => Promise<Answer>>;

const refusals: Record<ErrorCode, Rows> = {
  malformed_json: {
    'a truncated object': () => post('{"model":"m"'),
    'an empty body': () => post(''),
    'an empty body in chunks': () => post('', { isChunked: true }),
    'no body and no type': () => postNothing('/traces', {}),
    'no body, but its type': () => postNothing('/traces', jsonType),
    'a length of 0 and no type': () => postNothing('/traces', { 'content-length': '0' }),
    'no body for a batch': () => postNothing('/traces/batch', {}),
    'no body with an idempotency key': () => postNothing('/traces', { 'idempotency-key': 'none' }),
    'a body of spaces': () => post('   '),
    words: () => post('model=m'),
    'a trailing comma': () => post('{"model":"m",}'),
    'single quotes': () => post("{'model':'m'}"),
    'two documents': () => post(`${small}${small}`),
    'a number that is none': () => post('{"model":"m","cost_usd":NaN}'),
    'a raw newline in a string': () => post('{"model":"a\nb"}'),
  },
  malformed_encoding: {
    'words that should be gzip': () =>
      post(small, { headers: { ...jsonType, 'content-encoding': 'gzip' } }),
    'truncated gzip': () =>
      post(gzipSync(small).subarray(0, 20), {
        headers: { ...jsonType, 'content-encoding': 'gzip' },
      }),
  },
  malformed_utf8: {
    'a stray byte': () => postBytes(0xff),
    'a cut-off character': () => postBytes(0xe2, 0x82),
    'an overlong zero': () => postBytes(0xc0, 0x80),
    'a surrogate written as bytes': () => postBytes(0xed, 0xa0, 0x80),
  },
  malformed_request: {
    'words on the socket': () => raw('hello there'),
    'a header without a colon': () => raw(getLine, 'host: x', 'oops'),
    'a space before the colon': () => raw(getLine, 'host: x', 'oops : x'),
    'two lengths': () => raw(postLine, 'host: x', 'content-length: 3', 'content-length: 4'),
    'a length and chunks': () =>
      raw(postLine, 'host: x', 'content-length: 3', 'transfer-encoding: chunked'),
    'a length that is no number': () => raw(postLine, 'host: x', 'content-length: x'),
    'HTTP/1.1 without a host': () => raw(getLine, 'connection: close'),
  },
  headers_too_large: {
    'a long header': () => raw(getLine, 'host: x', `x: ${tooLong}`),
    'a long request line': () => raw(`GET /v1/healthz?${tooLong} HTTP/1.1`, 'host: x'),
  },
  key_missing: {
    'no header': () => ask({ path: '/v1/traces' }),
    'an empty header': () => authorized(''),
    'a scheme alone': () => authorized('Bearer'),
    'another scheme': () => authorized(`Basic ${keys.full.key}`),
    'a key without a scheme': () => authorized(keys.full.key),
    'a key and a word': () => authorized(`Bearer ${keys.full.key} x`),
  },
  key_unknown: {
    'a key that was never made': () => get('/traces', generateKey()),
    'a key of another form': () => get('/traces', 'secret'),
    'a key with a wrong checksum': () =>
      get(
        '/traces',
        keys.full.key.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      ),
  },
  key_expired: { 'an expired key': () => get('/traces', keys.expired.key) },
  key_revoked: { 'a revoked key': () => get('/traces', keys.revoked.key) },
  not_signed_in: {
    'a read of the dashboard without a session': () =>
      ask({ path: '/v1/traces', headers: { 'x-tracetally-dashboard': 'any' } }),
    'a look at the session when there is none': () => ask({ path: '/v1/session' }),
  },
  sign_in_code_invalid: {
    'a code that was never made': () => signIn({ code: generateSignInCode() }),
    'a code of another form': () => signIn({ code: keys.full.key }),
  },
  cross_site_request: {
    'a sign-in from a page of another site': () =>
      signIn({ key: keys.full.key }, { 'sec-fetch-site': 'cross-site' }),
  },
  scope_missing: {
    'an ingest key that reads': () => get('/traces', keys.ingest.key),
    'a read key that writes': () =>
      post(small, { headers: { ...jsonType, ...bearer(keys.read.key) } }),
  },
  trace_not_found: {
    'an id that does not exist': () => get(`/traces/${missingId}`),
    'the id of another team': () => get(`/traces/${traceId}`, keys.stranger.key),
    'an id that is no UUID': () => get('/traces/1'),
    'a UUID and a character': () => get(`/traces/${traceId}0`),
    'a long id': () => get(`/traces/${'a'.repeat(10_000)}`),
    'an id of broken percent codes': () => get('/traces/%ZZ'),
    'an id of odd characters': () => get('/traces/%00%20%2F..%2F%C3%A9'),
  },
  route_not_found: {
    'an unknown path': () => get('/nowhere'),
    'an unknown path without a key': () => ask({ path: '/v1/nowhere' }),
    'a path below a trace': () => get(`/traces/${traceId}/more`),
    'the API outside its base path': () => ask({ path: '/traces' }),
    'broken percent codes': () => get('/nowhere/%ZZ'),
    'an unknown path with a malformed body': () => post('{', { path: '/v1/nowhere' }),
  },
  method_not_allowed: { 'a method for nothing': () => post(small, { method: 'PUT' }) },
  body_too_large: {
    'a byte too many': () => post(bodyOf(bodyBytesMax + 1)),
    'a byte too many in chunks': () => post(bodyOf(bodyBytesMax + 1), { isChunked: true }),
  },
  body_too_complex: { 'a body that is never decoded': inEndlessLoop },
  unsupported_media_type: {
    'plain text': () => postAs('text/plain'),
    'a form': () => postAs('application/x-www-form-urlencoded'),
    'a type that begins like JSON': () => postAs('application/jsonx'),
    'a type that is none': () => postAs('json'),
    'a body without a type': () => post(small, { headers: {} }),
    'a body in another encoding': () =>
      post(deflateSync(small), { headers: { ...jsonType, 'content-encoding': 'deflate' } }),
  },
  invalid_input: {
    'a trace without a model': () => post('{}'),
    'page 0': () => get('/traces?page=0'),
    'a sign-in without a key or a code': () => signIn({}),
    'a sign-in with both': () => signIn({ key: keys.full.key, code: generateSignInCode() }),
    'a look at no code': () => signIn({}, {}, '/v1/session/preview'),
  },
  idempotency_key_reused: {
    'a key that came with another body': async () => {
      const headers = { ...jsonType, 'idempotency-key': 'once' };
      assert.equal((await post(small, { headers })).status, 201);
      return post('{"model":"other"}', { headers });
    },
  },
  too_many_failed_attempts: { 'the 31st bad key of an address in a minute': afterManyGuesses },
  rate_limited: { 'the 6th request of a key that may send 5': afterManyRequests },
  queue_full: {
    'a write to a full queue': () => broken({}, '/traces', { queueRowsMax: 0, queueBytesMax: 0 }),
  },
  reads_busy: {
    'a list of names while too many are being read': () =>
      broken({ tallies: async () => fail('reads_busy') }, '/analytics/by-model'),
  },
  store_unavailable: {
    'a write while the store is away': () => broken(refusing('store_unavailable')),
    'readiness while the store is away': () => broken({ ping: breaks }, '/readyz'),
  },
  outcome_unknown: { 'a write that was cut off': () => broken(refusing('outcome_unknown')) },
  unsupported_transfer_encoding: {
    'gzip inside chunks': () =>
      raw(postLine, 'host: x', 'transfer-encoding: gzip, chunked', 'connection: close', '', '0'),
  },
  disk_full: { 'a write to a full disk': () => broken(refusing('disk_full')) },
  internal: {
    'a write that breaks': () => broken({ append: breaks }),
    'a read that breaks': () => broken({ tallies: breaks }, '/analytics/overview'),
    'a look at the key that breaks': () => broken({ findKeyByHash: breaks }),
  },
  question_too_wide: {
    'a question that takes too long': () =>
      broken({ tallies: async () => fail('question_too_wide') }, '/analytics/overview'),
  },
  trace_damaged: {
    'a trace with a payload that cannot be read': () =>
      broken({ trace: async () => damagedTrace }, `/traces/${damagedTrace.id}`),
  },
  request_timeout: { 'half a header': () => slowAnswer },
};

const seen = new Set<string>();

for (const [code, rows] of Object.entries(refusals) as [ErrorCode, Rows][]) {
  describe(`${errorTable[code].status} ${code} answers`, () => {
    for (const [what, answer] of Object.entries(rows)) {
      test(what, async () => {
        http.assertProblem(await answer(), code);
        seen.add(code);
      });
    }
  });
}

test('every code of the error table was seen in an answer', () => {
  assert.deepEqual([...seen].sort(), Object.keys(errorTable).sort());
});

test('201 answers a trace, with a location under the base path that leads to it', async () => {
  const created = await post(bodyOf(bodyBytesMax));
  assert.equal(created.status, 201);
  assert.match(created.headers.get('content-type') ?? '', /^application\/json(;|$)/);
  const location = created.headers.get('location') ?? '';
  assert.equal(location, `/v1/traces/${created.json.id}`);
  const found = await ask({ path: location, headers: bearer(keys.full.key) });
  assert.equal(found.status, 200);
  assert.equal(found.text, created.text);
});

test('the location begins at the root if there is no base path', async () => {
  const created = await broken({});
  assert.equal(created.status, 201);
  assert.equal(created.headers.get('location'), `/traces/${created.json.id}`);
});

const readable = [
  ...'/traces /traces?page=9 /traces/{id} /healthz /readyz /openapi.json'.split(' '),
  ...'overview by-model by-feature daily'.split(' ').map((name) => `/analytics/${name}`),
];
for (const path of readable) {
  test(`200 answers GET ${path}`, async () => {
    const answer = await get(path.replace('{id}', traceId));
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json(;|$)/);
    assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f]{12}-[0-9a-z]+$/);
  });
}
