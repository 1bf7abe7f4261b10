import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { rollUp } from '../support/roll-up.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

const dear = { model: 'dear', cost_usd: limits.costUsdMax };
const cheap = { model: 'cheap', cost_usd: 0.000001 };

test('a total far over 2^63 pico-dollars is exact, before and after its traces are rolled up', async () => {
  const { key, teamId } = await service.keyFor();
  const post = async (traces: readonly object[]) =>
    assert.equal((await service.call(key, 'POST', '/traces/batch', { traces })).status, 201);
  const total = async () => {
    const { text } = await service.call(key, 'GET', '/analytics/overview');
    return /"total_cost_usd":([0-9.]+)/.exec(text)?.[1];
  };

  await post(Array.from({ length: 1_000 }, () => dear));
  await post([cheap]);
  assert.ok(BigInt(limits.costUsdMax) * 1_000n * 10n ** 12n > 2n ** 63n);
  assert.equal(await total(), '1000000000.000001');
  await rollUp(service.beside, [teamId]);
  assert.equal(await total(), '1000000000.000001');
  await post([cheap]);
  assert.equal(await total(), '1000000000.000002', 'sums and a tail');
  await rollUp(service.beside, [teamId]);
  const models = await service.call(key, 'GET', '/analytics/by-model');
  assert.match(models.text, /"dear","call_count":1000,[^}]*"total_cost_usd":1000000000\.000000,/);
  assert.match(models.text, /"cheap","call_count":2,[^}]*"total_cost_usd":0\.000002,/);
  assert.deepEqual(await verifyTeam(service.beside, teamId), { traces: 1_002, differences: [] });
});
