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
      timeout: 30_000,
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

test('with the Node.js of the host, a process ends within 2 s if the server never replies', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const program = (options: string): string => `
    import { TraceTally } from ${JSON.stringify(join(client, 'dist/index.js'))};
    const tally = new TraceTally({ baseUrl: 'http://127.0.0.1:${port}', apiKey: 'k'${options} });
    for (let at = 0; at < 250; at++) tally.enqueue({ model: 'm' });
    const lastLineMs = performance.now();
    process.once('exit', () => process.stdout.write(String(performance.now() - lastLineMs)));
  `;
  const run = (options = '') =>
    spawnSync(nodeOfHost(), ['--input-type=module', '-e', program(options)], {
      encoding: 'utf8',
      timeout: 60_000,
    });
  // The system accepts the connections although this process is blocked.
  let ended = run();
  // A busy machine may slow down a single run. A control that gives up at once shows how slow the machine is.
  const longerMs = () => Number(ended.stdout) - Number(run(', closeTimeoutMs: 1').stdout);
  let tookMs = longerMs();
  for (let at = 1; at < 5 && tookMs >= 2_000; at++) {
    ended = run();
    tookMs = longerMs();
  }
  const { status, stderr } = ended;
  silent.close();
  assert.equal(status, 0, stderr);
  assert.ok(tookMs < 2_000, `${tookMs} ms`);
  assert.match(stderr, /^TraceTally: .*Dropped 250 traces at shutdown.*\n$/);
});
