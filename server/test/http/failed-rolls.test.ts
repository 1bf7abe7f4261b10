import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

/** Makes the real store reject every new rollup. */
async function poisonRollups(service: TestService): Promise<void> {
  if (service.store === 'sqlite') {
    await service.rollupSql(`create trigger poison before insert on rollups
      begin select raise(abort, 'poisoned'); end`);
    return;
  }
  await service.sql(`create function poison() returns trigger language plpgsql as
    $$ begin raise exception 'poisoned'; end $$`);
  await service.sql(
    'create trigger poison before insert on rollups for each row execute function poison()',
  );
}

function cure(service: TestService): Promise<unknown> {
  const on = service.store === 'sqlite' ? '' : ' on rollups';
  return service.rollupSql(`drop trigger poison${on}`);
}

test('while rollups cannot be updated no write fails, every answer is complete, and the log says why', async (t) => {
  const service = await startTestService({ flags: { 'log-level': 'info' } });
  t.after(() => service.stop());
  const { key, teamId } = await service.keyFor();
  await poisonRollups(service);
  const total = async () =>
    (await service.call(key, 'GET', '/analytics/overview')).json.total_calls;
  const post = async () => (await service.call(key, 'POST', '/traces', { model: 'm' })).status;

  for (let count = 1; count <= 30; count++) {
    assert.equal(await post(), 201);
    assert.equal(await total(), count);
  }
  const line = await eventually('a line about the failure', 120_000, () =>
    service
      .log()
      .split('\n')
      .find((text) => text.includes('rollups could not be updated')),
  );
  const { level, team_id, reason } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual([level, team_id], ['error', teamId]);
  assert.match(String(reason), /poisoned/);
  assert.equal((await service.beside.marks(teamId)).seq, 0);
  assert.equal(await total(), 30);
  assert.deepEqual(await verifyTeam(service.beside, teamId), { traces: 30, differences: [] });

  await cure(service);
  assert.equal(await post(), 201);
  const isRolledUp = async () => (await service.beside.marks(teamId)).seq === 31;
  await eventually('rolling continues', 120_000, isRolledUp);
  assert.equal(await total(), 31);
  assert.deepEqual(await verifyTeam(service.beside, teamId), { traces: 31, differences: [] });
});
