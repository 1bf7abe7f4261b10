import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { serveMetrics } from '../../src/http/metrics-server.ts';
import { limits } from '../../src/limits.ts';
import { eventually } from '../support/eventually.ts';
import { scrape } from '../support/metrics.ts';
import { startTestService } from '../support/service.ts';
import { sendBytes } from '../http/helpers.ts';
import { holdPort } from './helpers.ts';

const loopback = { host: '127.0.0.1', port: 0 };
const request = 'GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n';

/** More than the buffers of a connection hold. */
const largeText = 'x'.repeat(20_000_000);

async function openSockets(t: TestContext, port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.on('error', () => {});
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
}

function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/metrics`).then(
    async (response) => (await response.text()) !== '' && response.ok,
    () => false,
  );
}

for (const [name, bytes] of [
  ['send nothing', ''],
  ['send half a request', 'GET /metr'],
  ['read nothing of their reply', request],
] as const) {
  test(`connections that ${name} are closed, so that others are served`, async (t) => {
    const text = bytes === request ? largeText : 'a 1\n';
    const exposition = { contentType: 'text/plain', text: async () => text };
    const bounds = {
      headersTimeoutMs: 500,
      idleSocketTimeoutMs: 1_000,
      metricsConnectionsMax: 4,
      timeoutCheckIntervalMs: 100,
    };
    const server = await serveMetrics(exposition, loopback, null, bounds);
    t.after(() => server.stop());
    for (const socket of await openSockets(t, server.port, 4)) {
      socket.pause();
      socket.write(bytes);
    }
    await eventually('a reply', 120_000, () => answers(server.port));
  });
}

test('requests at the same time are answered with one reading', async (t) => {
  let readings = 0;
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const exposition = {
    contentType: 'text/plain',
    async text() {
      readings += 1;
      await gate;
      return `readings ${readings}\n`;
    },
  };
  const server = await serveMetrics(exposition, loopback, null);
  t.after(() => server.stop());
  const sockets = await openSockets(t, server.port, 10);
  const replies = sockets.map((socket) => once(socket, 'data'));
  for (const socket of sockets) socket.write(request);
  await eventually('a reading', 120_000, () => readings === 1);
  // The server handles what has arrived before the reply to a later request.
  assert.equal((await fetch(`http://127.0.0.1:${server.port}/`)).status, 404);
  open();
  for (const [data] of await Promise.all(replies)) assert.match(String(data), /readings 1\n/);
  assert.ok(await answers(server.port));
  assert.equal(readings, 2, 'the next request reads again');
});

test('more connections than allowed and pipelined requests do not disturb the service, nor its stop', async (t) => {
  const service = await startTestService({ flags: { 'metrics-listen': '127.0.0.1:0' } });
  const { key } = await service.keyFor();
  const port = Number(new URL(service.metricsUrl ?? '').port);
  const sockets = await openSockets(t, port, 3 * limits.metricsConnectionsMax);
  for (const socket of sockets) {
    socket.pause();
    socket.write(request.repeat(200));
  }
  assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
  await service.stop();
});

test('thousands of unknown paths, methods, parameters and broken requests make no new series', async (t) => {
  const service = await startTestService({ flags: { 'metrics-listen': '127.0.0.1:0' } });
  t.after(() => service.stop());
  const { key } = await service.keyFor();
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
  const { origin } = new URL(service.url);
  async function probe(name: string): Promise<void> {
    for (const method of methods) {
      await service.call(key, method, `/zq${name}/x`);
      await service.call(key, method, `/traces?zq${name}=1`);
    }
    await service.call(key, 'GET', `/traces/zq${name}`);
    for (const method of ['PROPFIND', `ZQ${name}`]) {
      await sendBytes(
        origin,
        `${method} /zq${name} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
      );
    }
  }
  const seriesNow = async (): Promise<string[]> => {
    const { text } = await scrape(service);
    const names = text.split('\n').map((line) => line.slice(0, line.lastIndexOf(' ')));
    return names.filter((name) => name.startsWith('tracetally_')).toSorted();
  };
  const unknown = 'tracetally_http_requests_total{method="any",route="unknown",status="404"}';
  for (let i = 0; i < 2; i++) await probe(`a${i}`);
  const before = await seriesNow();
  const countBefore = (await scrape(service)).value(unknown);
  const probes = 200;
  const names = Array.from({ length: probes }, (_, i) => `b${i}`);
  while (names.length > 0) await Promise.all(names.splice(0, 10).map(probe));
  await eventually('the requests', 120_000, async () => {
    const { value } = await scrape(service);
    return value(unknown) >= countBefore + probes * methods.length;
  });
  const after = await seriesNow();
  assert.deepEqual(after, before);
  assert.doesNotMatch(after.join('\n'), /zq/i);
});

test('an address that is not valid or in use is refused with the name of the setting', async (t) => {
  const start = (address: string) => startTestService({ flags: { 'metrics-listen': address } });
  for (const wrong of ['9464', 'localhost', '127.0.0.1:99999', 'http://127.0.0.1:1', '::1:9464']) {
    await assert.rejects(
      start(wrong),
      /--metrics-listen is not valid\. Expected HOST:PORT, such as/,
    );
  }
  const { port, release } = await holdPort();
  t.after(release);
  await assert.rejects(
    start(`127.0.0.1:${port}`),
    new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use\\. Choose another with --metrics-listen`),
  );
  await assert.rejects(start('192.0.2.1:9464'), /Cannot listen on 192\.0\.2\.1, port 9464/);
});
