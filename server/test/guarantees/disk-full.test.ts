import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { assertRefused, call, postTrace, startServer, toolOn, totalOf } from '../cli/helpers.ts';
import type { NewKeyJson, Tool } from '../cli/helpers.ts';
import { eventually } from '../support/eventually.ts';
import type { ServerProcess } from '../support/cli.ts';
import { assertVerifyClean, mountTmpfs, serveToEnd } from '../process/helpers.ts';
import { skipUnlessCi } from '../support/skip.ts';

interface Disk {
  tool: Tool;
  server: ServerProcess;
  key: string;
  fill(): void;
  free(): void;
}

/** A server on a disk of 4 MiB. Null, and a skipped test, if there can be no such disk. */
async function smallDisk(t: TestContext): Promise<Disk | null> {
  const mount = await mountTmpfs(t, 'size=4m');
  if (mount.kind === 'impossible') {
    skipUnlessCi(t, mount.reason);
    return null;
  }
  const tool = toolOn(join(mount.folder, 'tracetally.db'));
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'small');
  const server = await startServer(t, tool);
  const filler = join(mount.folder, 'filler');
  return {
    tool,
    server,
    key,
    fill: () => fillDisk(filler),
    free: () => rmSync(filler),
  };
}

function fillDisk(filler: string): void {
  for (const bytes of [65_536, 4096, 1]) {
    try {
      for (;;) appendFileSync(filler, Buffer.alloc(bytes));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
}

/** Random, so that it cannot be compressed: 20 KB of text take 20 KB of disk. */
function payload(): { input: string } {
  return { input: randomBytes(15_000).toString('base64') };
}

test('on a full disk writes fail and reads work; writes succeed again when there is room', async (t) => {
  const disk = await smallDisk(t);
  if (!disk) return;
  const { server, key, tool } = disk;
  const first = await postTrace(server.url, key, payload());
  assert.equal(first.status, 201);
  disk.fill();

  // The space that the database files already have may hold a few more.
  let stored = 1;
  for (;;) {
    const { status, body } = await postTrace(server.url, key, payload());
    if (status !== 201) {
      assert.deepEqual([status, body.code], [507, 'disk_full']);
      break;
    }
    stored += 1;
    assert.ok(stored < 200, 'the disk is never full');
  }
  for (let i = 0; i < 3; i++) {
    assert.equal((await postTrace(server.url, key, payload())).status, 507);
  }
  assert.equal(await totalOf(server.url, key), stored);
  const overview = await call<{ total_calls: number }>(`${server.url}/analytics/overview`, key);
  assert.deepEqual([overview.status, overview.body.total_calls], [200, stored]);
  const read = await call(`${server.url}/traces/${first.body.id}`, key);
  assert.deepEqual([read.status, read.body], [200, first.body]);
  assert.equal((await call(`${server.url}/healthz`, null)).status, 200);

  disk.free();
  await eventually('a write that succeeds', 120_000, async () => {
    const { status } = await postTrace(server.url, key, payload());
    assert.ok(status === 201 || status === 507, `${status}`);
    return status === 201;
  });
  assert.equal(await totalOf(server.url, key), stored + 1);
  await assertVerifyClean(tool);
  assert.equal(await server.end('SIGINT'), 0);

  const again = await startServer(t, tool);
  assert.equal(await totalOf(again.url, key), stored + 1);
});

test('16 clients that fill the disk get 201 or 507, and every 201 is counted once', async (t) => {
  const disk = await smallDisk(t);
  if (!disk) return;
  const { server, key, tool } = disk;
  const answers = new Map<number, number>();
  async function client(): Promise<void> {
    for (let refused = 0; refused < 3;) {
      const { status } = await postTrace(server.url, key, payload());
      answers.set(status, (answers.get(status) ?? 0) + 1);
      if (status !== 201) refused += 1;
    }
  }
  await Promise.all(Array.from({ length: 16 }, client));
  assert.deepEqual(
    [...answers.keys()].sort((a, b) => a - b),
    [201, 507],
  );
  assert.equal(answers.get(507), 48);
  const stored = answers.get(201) ?? 0;
  assert.ok(stored > 20, `only ${stored} fitted`);
  assert.equal(await totalOf(server.url, key), stored);
  await assertVerifyClean(tool);

  // Also after a kill while the disk is full.
  await server.end('SIGKILL');
  const again = await startServer(t, tool);
  assert.equal(await totalOf(again.url, key), stored);
  await assertVerifyClean(tool);
});

/** Fills the disk until not even a small write fits into the space that the files already have. */
async function fillToTheLast({ server, key, fill }: Disk): Promise<void> {
  fill();
  let refused = 0;
  for (let i = 0; i < 300 && refused < 3; i++) {
    const { status } = await postTrace(server.url, key, i < 100 ? payload() : {});
    refused = status === 507 ? refused + 1 : 0;
  }
  assert.equal(refused, 3, 'the disk is never full');
}

test('commands that only read work on a full disk, and demo says why it cannot', async (t) => {
  const disk = await smallDisk(t);
  if (!disk) return;
  const { tool } = disk;
  await fillToTheLast(disk);
  for (const command of [['keys', 'list'], ['teams', 'list'], ['verify']]) {
    const result = await tool.run(...command);
    assert.equal(result.code, 0, result.stderr);
  }
  assertRefused(await tool.run('demo', '--team', 'small', '--count', '5000'), 1, /full/);
  await assertVerifyClean(tool);
  // A new store has no room here at all.
  const other = toolOn(tool.path.replace('tracetally.db', 'other.db'));
  assertRefused(await serveToEnd(other), 1, /full/);
});

test('keys create on a full disk fails with a clear message, not a stack trace', async (t) => {
  const disk = await smallDisk(t);
  if (!disk) return;
  const { tool } = disk;
  await fillToTheLast(disk);
  assertRefused(await tool.run('keys', 'create', '--team', 'small'), 1, /full/);
  disk.free();
  assert.equal((await tool.json<unknown[]>('keys', 'list')).length, 1);
  await tool.json('keys', 'create', '--team', 'small');
});
