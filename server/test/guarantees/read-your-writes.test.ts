import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const clients = 64;
const rounds = 10;
let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

test('for 64 concurrent clients a trace is in the next list, reply and all four analytics', async () => {
  const checks = await Promise.all(Array.from({ length: clients }, (_, i) => oneClient(i)));
  assert.equal(
    checks.reduce((sum, n) => sum + n, 0),
    clients * rounds * 6,
  );
});

/** Each client has its own team and looks for its trace after every single write. */
async function oneClient(number: number): Promise<number> {
  const { key } = await service.keyFor();
  const get = async (path: string) => (await service.call(key, 'GET', path)).json;
  let checks = 0;
  for (let round = 1; round <= rounds; round++) {
    const body = {
      model: `model-${number}`,
      feature_name: `feature-${number}`,
      latency_ms: round,
      cost_usd: 0.01,
    };
    const posted = await service.call(key, 'POST', '/traces', body);
    assert.equal(posted.status, 201);

    const list = await get('/traces?limit=1');
    assert.deepEqual([list.total, list.traces[0]], [round, posted.json]);
    assert.deepEqual(await get(`/traces/${posted.json.id}`), posted.json);
    const overview = await get('/analytics/overview');
    assert.deepEqual([overview.total_calls, overview.total_cost_usd], [round, round / 100]);
    const [model] = await get('/analytics/by-model');
    assert.deepEqual([model.model, model.call_count], [body.model, round]);
    const [feature] = await get('/analytics/by-feature');
    assert.deepEqual([feature.feature_name, feature.call_count], [body.feature_name, round]);
    const daily: { call_count: number }[] = await get('/analytics/daily');
    // A run may cross midnight, so that the calls lie on two days.
    assert.equal(
      daily.reduce((sum, day) => sum + day.call_count, 0),
      round,
    );
    checks += 6;
  }
  return checks;
}
