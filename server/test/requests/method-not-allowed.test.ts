import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { assertProblem, jsonType, send } from '../http/helpers.ts';

const bodyBytesMax = 1024;
let service: TestService;

before(async () => {
  const flags = { 'base-path': '/v1', 'body-limit': String(bodyBytesMax) };
  service = await startTestService({ flags });
});
after(() => service.stop());

const allowedByPath: Readonly<Record<string, string>> = {
  '/v1/traces': 'GET, HEAD, POST',
  '/v1/traces?page=1': 'GET, HEAD, POST',
  // A GET here asks for the trace of this id, and gets 404.
  '/v1/traces/batch': 'GET, HEAD, POST',
  '/v1/traces/00000000-0000-7000-8000-000000000000': 'GET, HEAD',
  '/v1/analytics/overview': 'GET, HEAD',
  '/v1/analytics/by-model': 'GET, HEAD',
  '/v1/analytics/by-feature': 'GET, HEAD',
  '/v1/analytics/daily': 'GET, HEAD',
  '/v1/openapi.json': 'GET, HEAD',
  '/v1/healthz': 'GET, HEAD',
  '/v1/readyz': 'GET, HEAD',
  '/healthz': 'GET, HEAD',
  '/readyz': 'GET, HEAD',
};
const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'QUERY'];

for (const method of methods) {
  test(`${method} without a key gets the methods that each path allows`, async () => {
    let refused = 0;
    for (const [path, allowed] of Object.entries(allowedByPath)) {
      if (allowed.includes(method)) continue;
      const answer = await send(service.url, { method, path });
      assertProblem(answer, 'method_not_allowed');
      assert.equal(answer.headers.get('allow'), allowed, path);
      refused++;
    }
    assert.equal(refused, method === 'POST' ? 10 : 13);
  });
}

const bodies: readonly [what: string, contentType: string, body: string][] = [
  ['good', 'application/json', '{"model":"m"}'],
  ['malformed', 'application/json', '{'],
  ['large', 'application/json', JSON.stringify('x'.repeat(bodyBytesMax))],
  ['plain text', 'text/plain', 'text'],
];
for (const [what, contentType, body] of bodies) {
  test(`a method that is not allowed is answered with 405 for any body: ${what}`, async () => {
    const sent = { path: '/v1/traces', headers: { 'content-type': contentType }, body };
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      assertProblem(await send(service.url, { method, ...sent }), 'method_not_allowed');
    }
  });
}

test('a method for an unknown path is answered with 404', async () => {
  for (const method of methods) {
    const answer = await send(service.url, { method, path: '/v1/nowhere', headers: jsonType });
    assert.equal(answer.headers.get('allow'), null);
    assert.equal(answer.status, 404, `${method} ${answer.text}`);
  }
});
