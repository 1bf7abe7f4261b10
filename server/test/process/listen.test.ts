import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { eventually } from '../support/eventually.ts';
import { startTestService } from '../support/service.ts';

/** Opens connections, each with a request, from a separate thread; posts the number of answers after each one. */
const flood = `
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, count } } = require('node:worker_threads');
  let answered = 0;
  for (let i = 0; i < count; i++) {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'));
    socket.on('error', () => {});
    socket.once('data', () => parentPort.postMessage(++answered));
  }`;

test('a flood of connections is accepted in far fewer turns of the event loop than there are connections', async (t) => {
  const service = await startTestService({ flags: { 'log-level': 'silent' } });
  const count = 400;
  const workerData = { port: Number(new URL(service.url).port), count };
  const worker = new Worker(flood, { eval: true, workerData });
  try {
    let answered = 0;
    worker.on('message', (sofar: number) => (answered = sofar));
    const untilMs = performance.now() + 20_000;
    let turns = 0;
    while (answered < count) {
      assert.ok(performance.now() < untilMs, `only ${answered} were answered`);
      // Each turn has some work, as in a busy service.
      const busyUntilMs = performance.now() + 5;
      while (performance.now() < busyUntilMs);
      await nextTurn();
      turns += 1;
    }
    t.diagnostic(`${count} connections in ${turns} turns`);
    assert.ok(turns < count / 2, `${turns} turns`);
  } finally {
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
    30_000,
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
