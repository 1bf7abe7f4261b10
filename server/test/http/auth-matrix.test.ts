import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { generateKey } from '../../src/core/api-key.ts';
import { errorTable } from '../../src/errors.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

interface Route {
  method: string;
  path: string;
  scope: 'ingest' | 'read';
}

const marker = 'model-of-the-owners';
/** Every route that takes a body takes this one, since fields that it does not know have no effect. */
const goodBody = '{"model":"m","traces":[{"model":"m"}]}';
/** Routes of OTLP have their own form of errors. */
const isOtlp = ({ path }: Pick<Route, 'path'>): boolean => path.startsWith('/v1/');
/** Routes for the forms of other tools accept one more header with a key. */
const isForTools = (route: Pick<Route, 'path'>): boolean =>
  isOtlp(route) || route.path.startsWith('/ingest/');

function assertRefused(route: Pick<Route, 'path'>, answer: Answer, code: ErrorCode): void {
  if (!isOtlp(route)) return http.assertProblem(answer, code);
  assert.equal(answer.status, errorTable[code].status, answer.text);
  assert.deepEqual(Object.keys(answer.json), ['code', 'message']);
  assert.match(answer.json.message, /^[A-Z].+\.$/);
  assert.equal(answer.headers.has('www-authenticate'), answer.status === 401);
}
const missingId = '00000000-0000-7000-8000-000000000000';
let service: TestService;
let routes: Route[];
let owner: KeyHolder;
let outsider: KeyHolder;
let expired: KeyHolder;
let revoked: KeyHolder;
let scoped: Record<Route['scope'], KeyHolder>;
let traceId: string;

before(async () => {
  service = await startTestService({ flags: { 'trust-proxy': '127.0.0.1' } });
  routes = await routesOf(service);
  owner = await service.keyFor('owners');
  outsider = await service.keyFor('outsiders');
  expired = await service.keyFor('owners', { expiresAtUs: Date.now() * 1000 - 1 });
  revoked = await service.keyFor('owners');
  await service.beside.revokeKey(revoked.keyId, Date.now() * 1000);
  scoped = {
    ingest: await service.keyFor('owners', { scope: 'ingest' }),
    read: await service.keyFor('owners', { scope: 'read' }),
  };
  const labels = ['model', 'feature_name', 'user_identifier', 'environment', 'provider'];
  const marked = Object.fromEntries(labels.map((name) => [name, marker]));
  const trace = { ...marked, latency_ms: 77_777, cost_usd: 77_777 };
  traceId = (await service.call(owner.key, 'POST', '/traces', trace)).json.id;
});
after(() => service.stop());

/** Every route of the document, so that a new one is covered from its first day. */
async function routesOf({ call }: TestService): Promise<Route[]> {
  const { paths } = (await call(null, 'GET', '/openapi.json')).json;
  return Object.keys(paths).flatMap((path) =>
    Object.keys(paths[path]).map((name): Route => {
      const method = name.toUpperCase();
      return { method, path, scope: method === 'GET' ? 'read' : 'ingest' };
    }),
  );
}

/** From its own address: this file fails more often than the limit per address allows. */
function ask(
  { method, path }: Pick<Route, 'method' | 'path'>,
  headers: Readonly<Record<string, string>>,
  id = traceId,
): Promise<Answer> {
  return http.send(service.url, {
    method,
    path: path.replace('{trace_id}', id),
    headers: { ...http.jsonType, ...http.fromFreshAddress(), ...headers },
    ...(method === 'GET' || method === 'HEAD' ? {} : { body: goodBody }),
  });
}

function counted(): Promise<number> {
  return service.call(owner.key, 'GET', '/traces').then(({ json }) => json.total);
}

test('the document names all routes of the contract', () => {
  const names = ['overview', 'by-model', 'by-feature', 'daily'];
  const expected = [
    'POST /traces',
    'POST /traces/batch',
    'GET /traces',
    'GET /traces/{trace_id}',
    ...names.map((name) => `GET /analytics/${name}`),
  ];
  const found = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  assert.deepEqual(
    expected.filter((route) => !found.has(route)),
    [],
  );
});

const badHeaders: Readonly<Record<string, [ErrorCode, (key: string) => string | null]>> = {
  'no key': ['key_missing', () => null],
  'an empty header': ['key_missing', () => ''],
  'a scheme without a key': ['key_missing', () => 'Bearer '],
  'a key without a scheme': ['key_missing', (key) => key],
  'another scheme': ['key_missing', (key) => `Basic ${key}`],
  'a key in quotes with a comma': ['key_missing', (key) => `Bearer "${key}", Bearer x`],
  'two keys': ['key_missing', (key) => `Bearer ${key} ${key}`],
  'half a key': ['key_unknown', (key) => `Bearer ${key.slice(0, 20)}`],
  'a key in capitals': ['key_unknown', (key) => `Bearer ${key.toUpperCase()}`],
  'a key and a character': ['key_unknown', (key) => `Bearer ${key}0`],
  "a key's id": ['key_unknown', () => `Bearer ${owner.keyId}`],
  "a team's id": ['key_unknown', () => `Bearer ${owner.teamId}`],
  'an unknown key': ['key_unknown', () => `Bearer ${generateKey()}`],
  'an expired key': ['key_expired', () => `Bearer ${expired.key}`],
  'a revoked key': ['key_revoked', () => `Bearer ${revoked.key}`],
};

describe('every route refuses', () => {
  for (const [what, [code, headerOf]] of Object.entries(badHeaders)) {
    test(what, async () => {
      const before = await counted();
      const authorization = headerOf(owner.key);
      for (const route of routes) {
        const answer = await ask(route, authorization === null ? {} : { authorization });
        assertRefused(route, answer, code);
        assert.ok(!answer.text.includes(marker));
      }
      assert.ok(routes.length >= 8);
      assert.equal(await counted(), before, 'nothing was recorded');
    });
  }
  test('a key of the other scope', async () => {
    const before = await counted();
    for (const route of routes) {
      const wrong = scoped[route.scope === 'read' ? 'ingest' : 'read'];
      assertRefused(route, await ask(route, http.bearer(wrong.key)), 'scope_missing');
    }
    assert.ok(routes.length >= 8);
    assert.equal(await counted(), before, 'nothing was recorded');
  });
  test('a key in the query or in a cookie', async () => {
    for (const { method, path } of routes) {
      const query = `?key=${owner.key}&api_key=${owner.key}&access_token=${owner.key}`;
      const cookie = `key=${owner.key}`;
      const headers = isForTools({ path }) ? { cookie } : { cookie, 'x-api-key': owner.key };
      const answer = await ask({ method, path: `${path}${query}` }, headers);
      assertRefused({ path }, answer, 'key_missing');
    }
    assert.ok(routes.length >= 8);
  });
});

test('every route takes a key of its scope, a full key, and any spelling of Bearer', async () => {
  for (const route of routes) {
    const status = route.method === 'POST' && !isForTools(route) ? 201 : 200;
    const headers = [`Bearer ${scoped[route.scope].key}`, `Bearer ${owner.key}`];
    for (const authorization of [...headers, `bearer ${owner.key}`, `BEARER  ${owner.key}`]) {
      const answer = await ask(route, { authorization });
      assert.equal(answer.status, status, `${route.method} ${route.path} ${answer.text}`);
    }
  }
  assert.ok(routes.length >= 8);
});

test('the API key is checked before the body is read', async () => {
  const written = routes.filter(({ method }) => method === 'POST');
  assert.ok(written.length >= 5);
  for (const { path } of written) {
    const sent = { method: 'POST', path, headers: http.fromFreshAddress() };
    const answer = await http.send(service.url, { ...sent, body: '{' });
    assertRefused({ path }, answer, 'key_missing');
    const lines = [`POST ${path} HTTP/1.1`, 'host: x', 'connection: close'];
    lines.push('content-encoding: gzip', 'content-length: 99999999');
    const early = await http.sendBytes(service.url, `${lines.join('\r\n')}\r\n\r\n{`);
    assertRefused({ path }, early, 'key_missing');
  }
});

test('probes and the OpenAPI document need no key and ignore an invalid one', async () => {
  for (const path of ['/healthz', '/readyz', '/openapi.json']) {
    for (const headers of [{}, { authorization: 'x' }, http.bearer(revoked.key)]) {
      assert.equal((await ask({ method: 'GET', path }, headers)).status, 200, path);
    }
  }
});

test("another team's key reads nothing of this team on any route", async () => {
  const stranger = await service.keyFor('strangers');
  let readRoutes = 0;
  for (const route of routes.filter(({ scope }) => scope === 'read')) {
    const [answer, own] = [
      await ask(route, http.bearer(stranger.key)),
      await ask(route, http.bearer(owner.key)),
    ];
    for (const secret of [marker, traceId, owner.teamId, '77777']) {
      assert.ok(!answer.text.includes(secret), `${route.path} ${answer.text}`);
    }
    assert.notEqual(answer.text, own.text, 'the owner sees more');
    readRoutes++;
  }
  assert.ok(readRoutes >= 6);
});

test("another team's key writes into its own team only", async () => {
  const before = await counted();
  const created = await ask({ method: 'POST', path: '/traces' }, http.bearer(outsider.key));
  assert.equal(created.status, 201);
  assert.equal(created.json.team_id, outsider.teamId);
  assert.equal(await counted(), before);
  const found = await service.call(owner.key, 'GET', `/traces/${created.json.id}`);
  http.assertProblem(found, 'trace_not_found');
});

test("another team's trace id gets the same bytes as a missing one", async () => {
  const withId = routes.filter(({ path }) => path.includes('{trace_id}'));
  assert.ok(withId.length >= 1);
  for (const route of withId) {
    const key = http.bearer(outsider.key);
    const missing = await ask(route, key, missingId);
    http.assertProblem(missing, 'trace_not_found');
    const odd = ['not-a-uuid', traceId.slice(1), `%7B${traceId}%7D`, traceId.replaceAll('-', '')];
    for (const id of [traceId, traceId.toUpperCase(), ...odd]) {
      const answer = await ask(route, key, id);
      assert.equal(http.withoutRequestId(answer), http.withoutRequestId(missing), id);
      assert.deepEqual(shownHeaders(answer), shownHeaders(missing), id);
    }
    assert.equal((await ask(route, http.bearer(owner.key))).status, 200, 'it is there');
  }
});

/** Without what differs between any two answers. */
function shownHeaders({ headers, json }: Answer): Record<string, string> {
  const {
    date,
    'x-request-id': id,
    'content-length': length,
    ...rest
  } = Object.fromEntries(headers);
  assert.ok(date !== undefined && id !== undefined && length !== undefined);
  return { ...rest, 'content-length': String(Number(length) - json.request_id.length) };
}

test('HEAD answers as GET does, without a body, and needs the same key', async () => {
  const readRoutes = routes.filter(({ method }) => method === 'GET');
  for (const { path } of [...readRoutes, { path: '/healthz' }, { path: '/openapi.json' }]) {
    const key = http.bearer(scoped.read.key);
    const [head, got] = [
      await ask({ method: 'HEAD', path }, key),
      await ask({ method: 'GET', path }, key),
    ];
    assert.equal(head.status, 200, path);
    assert.equal(head.text, '');
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      assert.ok(got.headers.has(name), name);
      assert.equal(head.headers.get(name), got.headers.get(name), name);
    }
  }
  assert.ok(readRoutes.length >= 6);
  for (const { path } of readRoutes) {
    assert.equal((await ask({ method: 'HEAD', path }, {})).status, 401, path);
    const wrong = await ask({ method: 'HEAD', path }, http.bearer(scoped.ingest.key));
    assert.equal(wrong.status, 403, path);
  }
});
