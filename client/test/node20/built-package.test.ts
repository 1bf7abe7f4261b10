import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TraceTally } from '../../src/index.ts';
import { nodeOfHost } from '../support/node-of-host.ts';
import { startServer } from '../support/server.ts';

const client = fileURLToPath(new URL('../../', import.meta.url));

before(() => {
  assert.ok(existsSync(join(client, 'dist/index.js')), 'build first: npm run build, in client/');
});

test('the built client works with the Node.js of the host', async (t) => {
  const server = await startServer();
  try {
    const key = await server.freshKey();
    const smoke = fileURLToPath(new URL('smoke.mjs', import.meta.url));
    const { status, stdout, stderr } = spawnSync(nodeOfHost(), [smoke, server.url, key], {
      encoding: 'utf8',
      timeout: 150_000,
    });
    t.diagnostic(stdout.trim());
    assert.equal(status, 0, stderr);
    assert.equal(stderr, '');
    const reader = new TraceTally({ apiKey: key, baseUrl: server.url });
    assert.equal((await reader.traces.list()).total, 253);
  } finally {
    await server.stop();
  }
});

test('with the Node.js of the host, a process gives up after 1.5 s if the server never replies', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  // A process that waits for the request or for the flush interval does not end in time, and is killed.
  const program = `
    import { TraceTally } from ${JSON.stringify(join(client, 'dist/index.js'))};
    const endless = { requestTimeoutMs: 3_600_000, flushIntervalMs: 3_600_000 };
    const tally = new TraceTally({ baseUrl: 'http://127.0.0.1:${port}', apiKey: 'k', ...endless });
    for (let at = 0; at < 250; at++) tally.enqueue({ model: 'm' });
  `;
  // The system accepts the connections although this process is blocked.
  const args = ['--input-type=module', '-e', program];
  const { status, stderr } = spawnSync(nodeOfHost(), args, { encoding: 'utf8', timeout: 120_000 });
  silent.close();
  assert.equal(status, 0, stderr);
  assert.match(
    stderr,
    /^TraceTally: .*Dropped 250 traces at shutdown: nothing could be sent for 1500 ms\..*\n$/,
  );
});
