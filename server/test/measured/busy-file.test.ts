import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { startTestService } from '../support/service.ts';

test('a write on a busy file is refused after one wait for the lock, not two', async () => {
  const service = await startTestService();
  const { key } = await service.keyFor();
  const other = new DatabaseSync(service.databasePath);
  other.exec('begin immediate');
  try {
    const attempts = 4;
    for (let attempt = 1; ; attempt++) {
      // The first use of a key is noted, and that must not wait for the lock before the write does.
      const startMs = performance.now();
      const { status, json } = await service.call(key, 'POST', '/traces', { model: 'm' });
      const waitedMs = performance.now() - startMs;
      assert.deepEqual([status, json.code], [503, 'store_unavailable']);
      // A machine that stands still for seconds can lengthen one wait. Two waits for the lock lengthen all of them.
      if (waitedMs < limits.busyTimeoutMs * 1.7) break;
      assert.ok(attempt < attempts, `${waitedMs} ms`);
    }
  } finally {
    other.close();
    await service.stop();
  }
});

test('the use of a key that found the file busy is stored with the next transaction', async () => {
  const service = await startTestService();
  const [reader, writer] = [await service.keyFor(), await service.keyFor()];
  const other = new DatabaseSync(service.databasePath);
  const usesOf = async (keyId: string): Promise<number> =>
    (await service.sql(`select 1 from key_uses where key_id = '${keyId}'`)).length;
  try {
    other.exec('begin immediate');
    assert.equal((await service.call(reader.key, 'GET', '/traces')).status, 200);
    other.exec('rollback');
    assert.equal(await usesOf(reader.keyId), 0);
    assert.equal((await service.call(writer.key, 'POST', '/traces', { model: 'm' })).status, 201);
    assert.deepEqual([await usesOf(reader.keyId), await usesOf(writer.keyId)], [1, 1]);
  } finally {
    other.close();
    await service.stop();
  }
});
