import assert from 'node:assert/strict';
import { closeSync, openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startTestService, temporaryFolder } from '../support/service.ts';

test('a damaged file is answered with 503 for what cannot be read or written, and never with wrong data', async () => {
  const folder = temporaryFolder();
  const first = await startTestService({ folder: folder.path });
  const { key } = await first.keyFor();
  for (let i = 0; i < 50; i++)
    await first.call(key, 'POST', '/traces', { model: 'm', input: `${i} `.repeat(300) });
  await first.stop();

  // The schema and the small tables stay whole.
  const pages = pagesOfTraces(first.databasePath);
  assert.ok(pages.length > 5);
  const file = openSync(first.databasePath, 'r+');
  for (const page of pages) writeSync(file, Buffer.alloc(4096, 0xaa), 0, 4096, (page - 1) * 4096);
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

/** The numbers of the pages that hold traces, payloads and their indexes. */
function pagesOfTraces(path: string): number[] {
  using db = new DatabaseSync(path, { readOnly: true });
  const read = db.prepare("select pageno from dbstat where name glob 'trace*' order by pageno");
  return read.all().map(({ pageno }) => Number(pageno));
}
