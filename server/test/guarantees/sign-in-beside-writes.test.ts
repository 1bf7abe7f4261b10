import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import { startTestService } from '../support/service.ts';

test('a sign-in on a busy file blocks no other request, and succeeds when the file is free', async () => {
  const service = await startTestService();
  const { key, keyId } = await service.keyFor();
  const other = new DatabaseSync(service.databasePath);
  try {
    const attempts = 4;
    for (let attempt = 1; ; attempt++) {
      const { code, record } = makeSignInCode(keyId, Date.now() * 1000);
      await service.beside.addSignInCode(record, Date.now() * 1000);
      other.exec('begin immediate');
      const startMs = performance.now();
      const signIn = service.call(null, 'POST', '/session', { code });
      for (let i = 0; i < 20; i++) {
        assert.equal((await service.call(key, 'GET', '/analytics/overview')).status, 200);
      }
      other.exec('rollback');
      const heldMs = performance.now() - startMs;
      const { status } = await signIn;
      // A read that waited for the file would take the whole time that SQLite waits for a lock, in every attempt. Only the sign-in
      // waits, and it is refused if a busy machine has held the file for too long.
      if (heldMs < limits.busyTimeoutMs * 0.8) {
        assert.equal(status, 201);
        break;
      }
      assert.ok(attempt < attempts, `twenty reads took ${heldMs} ms`);
    }
  } finally {
    other.close();
    await service.stop();
  }
});
