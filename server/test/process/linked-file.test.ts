import assert from 'node:assert/strict';
import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { assertRefused, postTrace, startServer, toolOn, totalOf } from '../cli/helpers.ts';
import type { NewKeyJson, Tool } from '../cli/helpers.ts';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/service.ts';
import { assertVerifyClean, hashOfFile, serveToEnd } from './helpers.ts';

interface Place {
  folder: string;
  /** The database by its own name. */
  real: Tool;
  key: string;
  /** The same path, in this folder, for another name of it. */
  named(...names: string[]): Tool;
}

async function madePlace(t: TestContext): Promise<Place> {
  const { path: folder, remove } = temporaryFolder();
  t.after(remove);
  mkdirSync(join(folder, 'data'));
  const real = toolOn(join(folder, 'data', 'real.db'));
  const { key } = await real.json<NewKeyJson>('keys', 'create', '--team', 'links');
  return { folder, real, key, named: (...names) => toolOn(join(folder, ...names)) };
}

test('a second server is refused on every other path to the same file', async (t) => {
  const { folder, real, key, named } = await madePlace(t);
  symlinkSync(real.path, join(folder, 'link.db'));
  symlinkSync('link.db', join(folder, 'link-to-link.db'));
  symlinkSync('data', join(folder, 'linked-folder'));
  const first = await startServer(t, real);
  const others = [named('link.db'), named('link-to-link.db'), named('linked-folder', 'real.db')];
  for (const other of others) {
    assertRefused(await serveToEnd(other), 1, /Another TraceTally server is using .*real\.db/);
  }
  assert.equal((await postTrace(first.url, key)).status, 201);
  await assertVerifyClean(real);
});

test('a server that was started through a link blocks a second one on the real path', async (t) => {
  const { folder, real, key, named } = await madePlace(t);
  symlinkSync(real.path, join(folder, 'link.db'));
  const server = await startServer(t, named('link.db'));
  assert.equal((await postTrace(server.url, key)).status, 201);
  assertRefused(await serveToEnd(real), 1, /Another TraceTally server/);
  assert.deepEqual(
    readdirSync(folder).sort(),
    ['data', 'link.db'],
    'all files are beside the real one',
  );
  await assertVerifyClean(real);
  await assertVerifyClean(named('link.db'));
  const copy = join(folder, 'copy.db');
  const { traces } = await named('link.db').json<{ traces: number }>('backup', copy);
  assert.equal(traces, 1, 'what is in the -wal is backed up by either name');
});

test('a file with two names is refused by every command and left as it is', async (t) => {
  const { folder, real, named } = await madePlace(t);
  linkSync(real.path, join(folder, 'twin.db'));
  const before = hashOfFile(real.path);
  for (const tool of [real, named('twin.db')]) {
    assertRefused(await serveToEnd(tool), 1, /hard link/);
    assertRefused(await tool.run('verify'), 1, /hard link/);
    assertRefused(await tool.run('keys', 'list'), 1, /hard link/);
    assertRefused(await tool.run('backup', join(folder, 'copy.db')), 1, /hard link/);
    const copied = await runCli(['copy', '--from', tool.database, '--to', named('to.db').database]);
    assertRefused(copied, 1, /hard link/);
  }
  assert.equal(hashOfFile(real.path), before);
  assert.ok(!existsSync(join(folder, 'copy.db')) && !existsSync(join(folder, 'to.db')));
  rmSync(join(folder, 'twin.db'));
  await assertVerifyClean(real);
});

test('a link to a file that does not exist yet creates the file at its target', async (t) => {
  const { folder, named } = await madePlace(t);
  symlinkSync(join('data', 'later.db'), join(folder, 'later-link.db'));
  const link = named('later-link.db');
  assertRefused(await link.run('verify'), 1, /The database .* does not exist/);
  const { key } = await link.json<NewKeyJson>('keys', 'create', '--team', 'later');
  const server = await startServer(t, link);
  assert.equal((await postTrace(server.url, key)).status, 201);
  assertRefused(await serveToEnd(named('data', 'later.db')), 1, /Another TraceTally server/);
  await server.end('SIGTERM');
  const again = await startServer(t, named('data', 'later.db'));
  assert.equal(await totalOf(again.url, key), 1);
});

test('a link that cannot be resolved is refused with a clear message', async (t) => {
  const { folder, named } = await madePlace(t);
  symlinkSync(join(folder, 'no-such-folder', 'a.db'), join(folder, 'nowhere.db'));
  symlinkSync('loop.db', join(folder, 'loop.db'));
  assertRefused(await serveToEnd(named('nowhere.db')), 1, /nowhere\.db.*no-such-folder/);
  assertRefused(await serveToEnd(named('loop.db')), 1, /loop\.db/);
});

test('copy from a store to itself by another path is refused', async (t) => {
  const { folder, real, named } = await madePlace(t);
  symlinkSync(real.path, join(folder, 'link.db'));
  const copied = await runCli(['copy', '--from', real.database, '--to', named('link.db').database]);
  assertRefused(copied, 1, /same database/);
});
