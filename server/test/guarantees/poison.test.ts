import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyTeam } from '../../src/tools/verify.ts';
import { startTestService } from '../support/service.ts';

test('a row that the store rejects fails only its own request, though others share its commit', async () => {
  const service = await startTestService();
  // A trigger makes the real store reject the row. A lock held for a moment makes all requests wait for one commit.
  const beside = new DatabaseSync(service.databasePath, { timeout: 5000 });
  beside.exec(`create trigger poison before insert on traces when new.model = 'poison'
    begin select raise(abort, 'refused'); end`);
  try {
    const holders = await Promise.all(Array.from({ length: 30 }, () => service.keyFor()));
    let refused = 0;
    for (let round = 0; round < 5; round++) {
      beside.exec('begin immediate');
      const waiting = holders.map(({ key }, i) =>
        service.call(key, 'POST', '/traces', {
          model: i % 10 === 3 ? 'poison' : 'fine',
          cost_usd: 0.1,
        }),
      );
      // The time in which requests gather behind the lock.
      await sleep(150);
      beside.exec('commit');
      for (const [i, reply] of (await Promise.all(waiting)).entries()) {
        assert.equal(reply.status, i % 10 === 3 ? 500 : 201, `team ${i}: ${reply.text}`);
        if (reply.status === 500) refused += 1;
      }
    }
    assert.equal(refused, 15);
    for (const [i, { key, teamId }] of holders.entries()) {
      const overview = (await service.call(key, 'GET', '/analytics/overview')).json;
      assert.equal(overview.total_calls, i % 10 === 3 ? 0 : 5, `team ${i}`);
      assert.deepEqual((await verifyTeam(service.beside, teamId)).differences, []);
    }
  } finally {
    beside.close();
    await service.stop();
  }
});
