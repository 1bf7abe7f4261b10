import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.ts';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import { startTestService } from '../support/service.ts';

test('a sign-in on a busy file blocks no other request, and succeeds when the file is free', async () => {
  const service = await startTestService();
  const { key, keyId } = await service.keyFor();
  const { code, record } = makeSignInCode(keyId, Date.now() * 1000);
  await service.beside.addSignInCode(record, Date.now() * 1000);
  const other = new DatabaseSync(service.databasePath);
  try {
    other.exec('begin immediate');
    const signIn = service.call(null, 'POST', '/session', { code });
    let slowestMs = 0;
    for (let i = 0; i < 20; i++) {
      const startMs = performance.now();
      assert.equal((await service.call(key, 'GET', '/analytics/overview')).status, 200);
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
      await sleep(20);
    }
    other.exec('rollback');
    // A read that waited for the file would take the whole time that SQLite waits for a lock.
    assert.ok(slowestMs < limits.busyTimeoutMs * 0.8, `a read took ${slowestMs} ms`);
    assert.equal((await signIn).status, 201);
  } finally {
    other.close();
    await service.stop();
  }
});
