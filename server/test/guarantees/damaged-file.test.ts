import assert from 'node:assert/strict';
import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import { test } from 'node:test';
import { startTestService, temporaryFolder } from '../support/service.ts';

test('a damaged file is answered with 503 for what cannot be read or written, and never with wrong data', async () => {
  const folder = temporaryFolder();
  const first = await startTestService({ folder: folder.path });
  const { key } = await first.keyFor();
  for (let i = 0; i < 50; i++)
    await first.call(key, 'POST', '/traces', { model: 'm', input: `${i} `.repeat(300) });
  await first.stop();

  // The schema and the small tables lie in the first pages and stay whole; the traces come after them.
  const size = statSync(first.databasePath).size;
  const file = openSync(first.databasePath, 'r+');
  for (let at = 20 * 4096; at < size; at += 4096)
    writeSync(file, Buffer.alloc(4096, 0xaa), 0, 4096, at);
  closeSync(file);

  const second = await startTestService({ folder: folder.path });
  try {
    const page = await second.call(key, 'GET', '/traces?limit=100');
    assert.deepEqual([page.status, page.json.code], [503, 'store_unavailable']);
    assert.equal(page.headers.get('retry-after'), '5');
    assert.match(second.log(), /malformed/);
    // The writer finds the damage when it writes, and then accepts no more writes: /readyz is 503.
    assert.equal((await second.call(null, 'GET', '/readyz')).status, 200);
    for (let i = 0; i < 2; i++) {
      const posted = await second.call(key, 'POST', '/traces', { model: 'm' });
      assert.deepEqual([posted.status, posted.json.code], [503, 'store_unavailable']);
    }
    assert.equal((await second.call(null, 'GET', '/readyz')).status, 503);
    assert.equal((await second.call(null, 'GET', '/healthz')).status, 200);
  } finally {
    await second.stop();
    folder.remove();
  }
});
