import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { eventually } from '../support/eventually.ts';
import { startTestService } from '../support/service.ts';

/** Opens connections from a separate thread, and counts them. The system accepts them although the server does not yet. */
const flood = `
  const { connect } = require('node:net');
  const { workerData: { port, count, opened } } = require('node:worker_threads');
  for (let i = 0; i < count; i++) {
    connect(port, '127.0.0.1', () => {
      Atomics.add(opened, 0, 1);
      Atomics.notify(opened, 0);
    }).on('error', () => {});
  }`;

test('a flood of connections is accepted in far fewer turns of the event loop than there are connections', async (t) => {
  const service = await startTestService({ flags: { 'log-level': 'silent' } });
  const count = 400;
  const opened = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { port: Number(new URL(service.url).port), count, opened };
  const worker = new Worker(flood, { eval: true, workerData });
  let accepted = 0;
  const noteAccepted = (): void => void (accepted += 1);
  subscribe('net.server.socket', noteAccepted);
  try {
    await once(worker, 'online');
    // This thread stands still, as that of a busy service does, until all of them wait to be accepted.
    const untilMs = performance.now() + 120_000;
    for (let seen = 0; seen < count; seen = Atomics.load(opened, 0)) {
      assert.ok(performance.now() < untilMs, `only ${seen} were opened`);
      Atomics.wait(opened, 0, seen, 1_000);
    }
    const before = accepted;
    let turns = 0;
    while (accepted < count) {
      assert.ok(performance.now() < untilMs, `only ${accepted} were accepted`);
      await nextTurn();
      turns += 1;
    }
    t.diagnostic(`${count - before} connections in ${turns} turns`);
    assert.ok(turns < (count - before) / 2, `${turns} turns`);
  } finally {
    unsubscribe('net.server.socket', noteAccepted);
    await worker.terminate();
    await service.stop();
  }
});

test('a stop closes the connections of every listening socket and frees the port', async () => {
  const service = await startTestService();
  const { hostname, port } = new URL(service.url);
  const sockets: Socket[] = [];
  let answers = 0;
  for (let i = 0; i < 100; i++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.on(
      'data',
      (data: Buffer) => (answers += data.toString().split('HTTP/1.1 200').length - 1),
    );
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
    sockets.push(socket);
  }
  await eventually(
    () => `${answers} of 100 answers`,
    120_000,
    () => answers >= 100,
    10,
  );
  const closed = Promise.all(
    sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))),
  );
  await service.stop();
  await closed;
  const again = await startTestService({ flags: { port } });
  await again.stop();
});
