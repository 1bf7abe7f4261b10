import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { call, postTrace, startServer, toolOn, totalOf } from '../cli/helpers.ts';
import type { NewKeyJson, PageJson, Tool } from '../cli/helpers.ts';
import { seededRandom } from '../support/seeded-random.ts';
import { temporaryFolder } from '../support/service.ts';

/** What may happen to the files of a running server. */
const mishaps: Readonly<Record<string, (path: string) => void>> = {
  'the database is removed': (path) => rmSync(path),
  'the database is replaced by a copy': (path) => {
    copyFileSync(path, `${path}.copy`);
    renameSync(`${path}.copy`, path);
  },
  'the database is moved away': (path) => renameSync(path, `${path}.away`),
  'the -wal is removed': (path) => rmSync(`${path}-wal`),
  'the -wal is replaced by a copy': (path) => {
    copyFileSync(`${path}-wal`, `${path}.copy`);
    renameSync(`${path}.copy`, `${path}-wal`);
  },
  'the -shm is removed': (path) => rmSync(`${path}-shm`),
  'the folder is moved away': (path) => {
    renameSync(dirname(path), `${dirname(path)}-away`);
    mkdirSync(dirname(path));
  },
};

for (const [name, mishap] of Object.entries(mishaps)) {
  test(`${name}: no acknowledged write is missing after a restart`, async (t) => {
    const { tool, key } = await madeStore(t);
    const server = await startServer(t, tool);
    // Whatever is in the file before the mishap is lost or not by what was done to the file, not by us.
    assert.equal((await postTrace(server.url, key)).status, 201);
    assert.equal((await call(`${server.url}/readyz`, null)).status, 200);
    mishap(tool.path);
    assert.equal((await call(`${server.url}/readyz`, null)).status, 503, 'without any write');

    const refused = await postTrace(server.url, key);
    assert.deepEqual([refused.status, refused.body.code], [503, 'outcome_unknown']);
    for (let i = 0; i < 3; i++) {
      const { status, body } = await postTrace(server.url, key);
      assert.deepEqual([status, body.code], [503, 'store_unavailable']);
    }
    assert.equal((await call(`${server.url}/readyz`, null)).status, 503);
    assert.equal((await call(`${server.url}/healthz`, null)).status, 200);
    // Reads go on from the files that are open.
    const page = await call<PageJson>(`${server.url}/traces`, key);
    assert.equal(page.status, 200);
    await server.end('SIGTERM');
    assert.match(server.stderr(), /"level":"fatal".*(was removed|was replaced).*restart/);
    assert.equal(server.stderr().match(/"level":"fatal"/g)?.length, 1);
  });
}

test('checkpoints, tools and a restart do not stop the writer', async (t) => {
  const { tool, key } = await madeStore(t);
  const server = await startServer(t, tool);
  const random = seededRandom(1);
  for (let i = 0; i < 3; i++) {
    // Past a thousand pages the log is written back into the database and begins anew.
    for (let n = 0; n < 40; n++) {
      const input = `${i} ${n} ${random()}`.repeat(8000);
      assert.equal((await postTrace(server.url, key, { input })).status, 201);
    }
    assert.equal((await tool.run('verify')).code, 0);
    assert.equal((await tool.run('keys', 'create', '--team', 'file')).code, 0);
  }
  assert.equal((await call(`${server.url}/readyz`, null)).status, 200);
  await server.end('SIGKILL');
  const again = await startServer(t, tool);
  assert.equal(await totalOf(again.url, key), 120);
  assert.equal((await postTrace(again.url, key)).status, 201);
});

async function madeStore(t: TestContext): Promise<{ tool: Tool; key: string }> {
  const folder = temporaryFolder();
  t.after(folder.remove);
  mkdirSync(join(folder.path, 'data'));
  const tool = toolOn(join(folder.path, 'data', 'tracetally.db'));
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'file');
  return { tool, key };
}
