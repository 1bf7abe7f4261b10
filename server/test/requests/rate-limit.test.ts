import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { Answer, TestService } from '../support/service.ts';
import { assertProblem } from '../http/helpers.ts';

const perMinute = 3;
let service: TestService;

before(async () => {
  service = await startTestService({ flags: { 'rate-limit': String(perMinute) } });
});
after(() => service.stop());

test('a request that is refused for its scope counts against the rate limit of its key', async () => {
  const { key } = await service.keyFor('writers', { scope: 'ingest' });
  const read = (): Promise<Answer> => service.call(key, 'GET', '/traces');
  for (let i = 0; i < perMinute; i++) assertProblem(await read(), 'scope_missing');
  assertProblem(await read(), 'rate_limited');
  assertProblem(await service.call(key, 'POST', '/traces', { model: 'm' }), 'rate_limited');
});

test('requests of both kinds share one limit, and another key has its own', async () => {
  const { key } = await service.keyFor('mixed', { scope: 'ingest' });
  assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
  assertProblem(await service.call(key, 'GET', '/traces'), 'scope_missing');
  assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
  assertProblem(await service.call(key, 'GET', '/traces'), 'rate_limited');
  const other = await service.keyFor('mixed');
  assert.equal((await service.call(other.key, 'GET', '/traces')).status, 200);
});

test('the log names the team and the key of a request that is refused for its scope', async () => {
  const { key, keyId, teamId } = await service.keyFor('logged', { scope: 'ingest' });
  const refused = await service.call(key, 'GET', '/traces');
  assertProblem(refused, 'scope_missing');
  const lines = service
    .log()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const line = lines.find(({ request_id: id }) => id === refused.json.request_id);
  assert.equal(line?.team_id, teamId);
  assert.equal(line?.key_id, keyId);
});
