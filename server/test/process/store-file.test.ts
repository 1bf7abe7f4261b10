import assert from 'node:assert/strict';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import {
  assertRefused,
  call,
  inParallel,
  postTrace,
  startServer,
  toolInFolder,
  toolOn,
} from '../cli/helpers.ts';
import type { NewKeyJson, Tool } from '../cli/helpers.ts';
import { assertVerifyClean, hashOfFile, mountTmpfs, serveToEnd } from './helpers.ts';
import { callCli } from '../support/cli.ts';
import { skipUnlessCi } from '../support/skip.ts';

async function madeStore(t: TestContext): Promise<Tool & { key: string }> {
  const tool = toolInFolder(t);
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'file');
  return { ...tool, key };
}

async function timedStart(t: TestContext, tool: Tool) {
  const startMs = performance.now();
  const server = await startServer(t, tool);
  return { ...server, startedMs: performance.now() - startMs };
}

/** Every way to open the file is refused with these words, and not one byte of it changes. */
async function assertRefusedUntouched(
  tool: Tool,
  words: RegExp,
  more: readonly string[][] = [],
): Promise<void> {
  const files = [tool.path, `${tool.path}-wal`].filter((path) => existsSync(path));
  const before = files.map(hashOfFile);
  assertRefused(await serveToEnd(tool), 1, words);
  const commands = [['keys', 'list'], ['keys', 'create', '--team', 'x'], ['verify'], ...more];
  for (const command of commands) assertRefused(await tool.run(...command), 1, words);
  assert.deepEqual(files.map(hashOfFile), before, 'the file was changed');
  assert.ok(!existsSync(`${tool.path}-journal`));
}

describe('the file of a store', { concurrency: 2 }, () => {
  test('a second server on the same file is refused, and the first keeps running', async (t) => {
    const tool = await madeStore(t);
    const first = await startServer(t, tool);
    assert.equal((await postTrace(first.url, tool.key)).status, 201);
    for (let i = 0; i < 2; i++) {
      const second = await serveToEnd(tool);
      assertRefused(second, 1, /Another TraceTally server is using .*tracetally\.db.*--database/);
    }
    assert.equal((await postTrace(first.url, tool.key)).status, 201);
    assert.equal((await call(`${first.url}/readyz`, null)).status, 200);
    await assertVerifyClean(tool);
  });

  test('a new server starts immediately after kill -9 and after a normal stop', async (t) => {
    const tool = await madeStore(t);
    const ids: string[] = [];
    const longerMs: Record<string, number> = {};
    let last = 'nothing';
    for (const signal of ['SIGKILL', 'SIGINT', 'SIGKILL', 'SIGINT', 'SIGKILL'] as const) {
      // A server on a new file that starts at the same time shows how slow the machine is.
      const [server, control] = await Promise.all([
        timedStart(t, tool),
        timedStart(t, toolInFolder(t)),
      ]);
      const ownMs = server.startedMs - control.startedMs;
      longerMs[last] = Math.min(longerMs[last] ?? Infinity, ownMs);
      await control.end('SIGKILL');
      for (const id of ids) {
        assert.equal((await call(`${server.url}/traces/${id}`, tool.key)).status, 200);
      }
      const { status, body } = await postTrace(server.url, tool.key);
      assert.equal(status, 201);
      ids.push(body.id);
      await server.end(signal);
      last = signal;
    }
    // The better of two: a busy machine may slow down one of them.
    for (const [end, ms] of Object.entries(longerMs)) {
      assert.ok(ms < 4000, `after ${end} it took ${ms} ms longer to start`);
    }
    await assertVerifyClean(tool);
  });

  // The first ones were used before the first release.
  for (const schema of [1, 9, 2 ** 31 - 1]) {
    test(`a file of schema ${schema} is refused and left unchanged`, async (t) => {
      const tool = await madeStore(t);
      const db = new DatabaseSync(tool.path);
      db.exec(`pragma user_version = ${schema}`);
      db.close();
      const words = new RegExp(
        `tracetally\\.db was written by another version of TraceTally \\(schema ${schema}; this version needs schema \\d+\\)\\. ` +
          'Use the version that wrote it, or choose an empty database with --database\\. Nothing was changed\\.',
      );
      const backup = join(dirname(tool.path), 'backup.db');
      await assertRefusedUntouched(tool, words, [['backup', backup]]);
      assert.ok(!existsSync(backup));
      const target = toolOn(join(dirname(tool.path), 'target.db'));
      for (const [from, to] of [
        [tool, target],
        [target, tool],
      ] as const) {
        await target.json('keys', 'create', '--team', 'x');
        const before = hashOfFile(tool.path);
        assertRefused(
          await callCli(['copy', '--from', from.database, '--to', to.database]),
          1,
          words,
        );
        assert.equal(hashOfFile(tool.path), before);
      }
    });
  }

  test('a file of another schema keeps what its last server could not move out of the log', async (t) => {
    const made = await madeStore(t);
    const tool = toolOn(`${made.path}.copy.tracetally.db`);
    const db = new DatabaseSync(made.path);
    db.exec('pragma wal_autocheckpoint = 0');
    db.exec('pragma user_version = 9');
    for (const suffix of ['', '-wal']) copyFileSync(made.path + suffix, tool.path + suffix);
    db.close();
    assert.ok(statSync(`${tool.path}-wal`).size > 0);
    await assertRefusedUntouched(tool, /another version of TraceTally \(schema 9;/);
  });

  test('the database of another application is refused and left unchanged', async (t) => {
    const tool = toolInFolder(t);
    const db = new DatabaseSync(tool.path);
    db.exec('create table teams (name text)');
    db.exec("insert into teams values ('not ours')");
    db.close();
    await assertRefusedUntouched(
      tool,
      /tracetally\.db is an SQLite database, but not a TraceTally database/,
    );
  });

  test('a file that is not a database is refused and left unchanged', async (t) => {
    const tool = toolInFolder(t);
    writeFileSync(tool.path, 'Dear diary, today I was opened by a database.\n'.repeat(200));
    await assertRefusedUntouched(
      tool,
      /Cannot open the database .*tracetally\.db: file is not a database/,
    );
  });

  test('a folder instead of the file is refused with a clear message', async (t) => {
    const tool = toolInFolder(t);
    mkdirSync(tool.path);
    assertRefused(await serveToEnd(tool), 1, /Cannot open the database .*tracetally\.db/);
    assertRefused(await tool.run('keys', 'list'), 1, /Cannot open the database .*tracetally\.db/);
  });

  test('missing folders of the database are created', async (t) => {
    const outer = dirname(toolInFolder(t).path);
    const tool = toolOn(join(outer, 'a', 'b c', 'ü', 'my.db'));
    const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'deep');
    const server = await startServer(t, tool);
    assert.equal((await postTrace(server.url, key)).status, 201);
    assert.ok(existsSync(tool.path));
  });

  test('commands that only read refuse a missing database and create none', async (t) => {
    const tool = toolInFolder(t);
    const looks = [['keys', 'list'], ['teams', 'list'], ['verify'], ['keys', 'revoke', 'key_x']];
    await inParallel(looks, async (command) => {
      assertRefused(await tool.run(...command), 1, /The database .*tracetally\.db does not exist/);
    });
    assert.deepEqual(readdirSync(dirname(tool.path)), []);
  });

  test('a file instead of the folder is refused with a clear message', async (t) => {
    const outer = toolInFolder(t);
    writeFileSync(outer.path, 'a file');
    const tool = toolOn(join(outer.path, 'inside.db'));
    assertRefused(await serveToEnd(tool), 1, /Cannot open the database .*inside\.db/);
    const created = await tool.run('keys', 'create', '--team', 'x');
    assertRefused(created, 1, /Cannot open the database .*inside\.db/);
  });

  test('a folder that is not writable is refused with a clear message', async (t) => {
    let folder = dirname(toolInFolder(t).path);
    if (process.getuid?.() === 0) {
      // Root may write anywhere, except on a read-only file system.
      const mount = await mountTmpfs(t, 'ro,size=1m');
      if (mount.kind === 'impossible') return skipUnlessCi(t, mount.reason);
      folder = mount.folder;
    } else {
      chmodSync(folder, 0o555);
    }
    for (const tool of [toolOn(join(folder, 'x.db')), toolOn(join(folder, 'sub', 'x.db'))]) {
      assertRefused(await serveToEnd(tool), 1, /Cannot open the database .*x\.db/);
      const created = await tool.run('keys', 'create', '--team', 'x');
      assertRefused(created, 1, /Cannot open the database .*x\.db/);
    }
  });
});
