import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

const dear = { model: 'm', cost_usd: limits.costUsdMax };

const post = ({ key }: KeyHolder, body: object = dear) =>
  service.call(key, 'POST', '/traces', body);

/** As after 9.2 million of the dearest traces: one more fits, two do not. */
async function nearTheBound(): Promise<KeyHolder> {
  const holder = await service.keyFor();
  assert.equal((await post(holder)).status, 201);
  const ofTeam =
    service.store === 'sqlite'
      ? `team_no = (select no from teams where id = '${holder.teamId}')`
      : `team_id = '${holder.teamId}'`;
  await service.sql(
    `update rollups set cost_micros = 9223372036854775807 - 1500000000000 where ${ofTeam}`,
  );
  return holder;
}

test('a cost that would overflow the total is refused with its own error code, and nothing is stored', async () => {
  const holder = await nearTheBound();
  assert.equal((await post(holder)).status, 201);
  for (let i = 0; i < 2; i++) {
    const { status, json } = await post(holder);
    assert.deepEqual([status, json.code], [422, 'total_cost_too_large']);
  }
  const batch = await service.call(holder.key, 'POST', '/traces/batch', {
    traces: [{ model: 'free' }, dear],
  });
  assert.deepEqual([batch.status, batch.json.code], [422, 'total_cost_too_large']);
  assert.equal((await post(holder, { model: 'free' })).status, 201, 'others of the team fit');
  const overview = await service.call(holder.key, 'GET', '/analytics/overview');
  assert.equal(overview.json.total_calls, 3);
  assert.match(overview.text, /"total_cost_usd":9223371536854\.775807/);
  assert.equal((await service.call(holder.key, 'GET', '/traces')).json.total, 3);
});

test('other writes in the same commit are stored, of the same and of other teams', async () => {
  const [full, other] = [await nearTheBound(), await service.keyFor()];
  assert.equal((await post(full)).status, 201);
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      if (i % 4 === 0) return ['refused', (await post(full)).status];
      if (i % 4 === 1) return ['free', (await post(full, { model: 'free' })).status];
      return ['other', (await post(other)).status];
    }),
  );
  const seen = new Set(answers.map(([what, status]) => `${what} ${status}`));
  assert.deepEqual([...seen].sort(), ['free 201', 'other 201', 'refused 422']);
});
