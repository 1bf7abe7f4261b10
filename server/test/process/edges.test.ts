import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { runCli, spawnServer } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

test('SIGTERM to npm start stops the service and releases the database', async (t) => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'a.db');
  const npm = spawn('npm', ['start', '--', '--port', '0', '--database', `sqlite:${path}`], {
    cwd: root,
  });
  let output = '';
  npm.stdout.on('data', (data: Buffer) => (output += data.toString()));
  npm.stderr.on('data', (data: Buffer) => (output += data.toString()));
  const ended = new Promise((resolve) => npm.once('close', resolve));
  t.after(() => void npm.kill('SIGKILL'));
  const listens = () => output.includes('TraceTally is listening');
  await eventually(() => `a server that listens (${output})`, 120_000, listens);
  npm.kill('SIGTERM');
  await ended;
  assert.match(output, /"msg":"stopped"/);
  // The lock is free again: another server may have the file at once.
  const next = await spawnServer(['--database', `sqlite:${path}`]);
  assert.equal(await next.end('SIGTERM'), 0);
  folder.remove();
});

test('a service that cannot create its first key ends and does not keep listening', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'a.db');
  await (await openSqliteStore({ path, clock: { kind: 'system' }, role: 'server' })).close();
  const beside = new DatabaseSync(path);
  beside.exec('begin immediate');
  try {
    const { code, stdout, stderr } = await runCli([
      'serve',
      '--port',
      '0',
      '--database',
      `sqlite:${path}`,
    ]);
    assert.equal(code, 1);
    assert.doesNotMatch(stdout, /tt_/);
    assert.match(stderr, /locked/);
  } finally {
    beside.close();
    folder.remove();
  }
});

test('only the owner can access the database and its folder', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'data', 'a.db');
  const server = await spawnServer(['--database', `sqlite:${path}`]);
  const modes = ['', '-wal', '-shm', '.lock'].map((end) => statSync(path + end).mode & 0o777);
  assert.deepEqual(modes, [0o600, 0o600, 0o600, 0o600]);
  assert.equal(statSync(join(folder.path, 'data')).mode & 0o777, 0o700);
  await server.end('SIGTERM');
  folder.remove();
});

test('garbage after a request does not change its answer', async () => {
  const service = await startTestService();
  try {
    const { key } = await service.keyFor();
    const { hostname, port } = new URL(service.url);
    const body = '{"model":"m"}';
    let answer = '';
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname);
      socket.on('data', (data) => (answer += data.toString()));
      socket.on('close', () => resolve());
      socket.write(
        `POST /traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}\u0001garbage\r\n\r\n`,
      );
    });
    const { json } = await service.call(key, 'GET', '/traces');
    assert.equal(json.total, 1);
    assert.match(answer, /^HTTP\/1\.1 201 /, 'stored, so the answer must say so');
    assert.equal(answer.match(/HTTP\/1\.1/g)?.length, 1);
  } finally {
    await service.stop();
  }
});

test('HEAD of a large page does not read it, and does not delay others', async () => {
  const service = await startTestService();
  try {
    const { key } = await service.keyFor();
    for (let i = 0; i < 10; i++) {
      await service.call(key, 'POST', '/traces', { model: 'm', input: `${i}`.repeat(1_000_000) });
    }
    const head = await service.call(key, 'HEAD', '/traces?limit=100');
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal((await service.call(key, 'GET', '/traces?limit=100')).json.traces.length, 10);
  } finally {
    await service.stop();
  }
});
