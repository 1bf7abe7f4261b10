import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import {
  assertFieldError,
  assertProblem,
  bearer,
  fromFreshAddress,
  send,
  withoutRequestId,
} from '../http/helpers.ts';

let service: TestService;
let team: KeyHolder;
let writer: KeyHolder;
let missing: string;

before(async () => {
  service = await startTestService({ flags: { 'trust-proxy': '127.0.0.1' } });
  team = await service.keyFor('readers');
  writer = await service.keyFor('readers', { scope: 'ingest' });
  const answer = await get('/traces/00000000-0000-7000-8000-000000000000', team.key);
  assertProblem(answer, 'trace_not_found');
  missing = withoutRequestId(answer);
});
after(() => service.stop());

function get(path: string, key?: string, method = 'GET'): Promise<Answer> {
  const headers = { ...fromFreshAddress(), ...(key === undefined ? {} : bearer(key)) };
  return send(service.url, { method, path, headers });
}

describe('an id that cannot be decoded is answered like any id that does not exist', () => {
  for (const id of ['%', '%ZZ', '%2', '%ff', '%C3%28', '%ED%A0%80', 'a%b', '%25%', '%2F%', '%%%']) {
    test(id, async () => {
      const path = `/traces/${id}`;
      assertProblem(await get(path), 'key_missing');
      assertProblem(await get(path, 'wrong'), 'key_unknown');
      assertProblem(await get(path, writer.key), 'scope_missing');
      assert.equal(withoutRequestId(await get(path, team.key)), missing);
      assertProblem(await get(path, team.key, 'DELETE'), 'method_not_allowed');
    });
  }
  test('in the form of a proxy', async () => {
    const path = 'http://elsewhere/traces/%';
    assertProblem(await get(path), 'key_missing');
    assert.equal(withoutRequestId(await get(path, team.key)), missing);
  });
});

test('guesses at undecodable ids count as failed attempts', async () => {
  const from = fromFreshAddress();
  const headers = { ...from, ...bearer('wrong') };
  for (let i = 0; i < 30; i++) {
    assertProblem(await send(service.url, { path: '/traces/%', headers }), 'key_unknown');
  }
  const last = await send(service.url, { path: '/traces/%', headers });
  assertProblem(last, 'too_many_failed_attempts');
});

test('an undecodable path that is below no endpoint needs no key to be not found', async () => {
  for (const path of ['/%', '/trac%', '/nowhere/%ZZ', '/analytics/%', '/traces/%/more']) {
    assertProblem(await get(path), 'route_not_found');
  }
});

test('an undecodable query is not a part of the path', async () => {
  assertFieldError(await get('/traces?page=%ZZ', team.key), 'page');
  assertFieldError(await get('/traces/%?x=%', team.key), 'x');
});

test('any text as an id asks for a key first, whatever its percent codes', async () => {
  const piece = fc.constantFrom('%', '%2', '%25', '%2F', '%41', '%C3', '%A9', '%ff', 'a', '.', '-');
  const ids = fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(ids, async (id) => {
      assertProblem(await get(`/traces/${id}`), 'key_missing');
      assert.equal(withoutRequestId(await get(`/traces/${id}`, team.key)), missing);
    }),
    { numRuns: 100 },
  );
});
