import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TraceTally } from '../../src/index.ts';
import type { Stats, TraceInput } from '../../src/index.ts';
import { scriptedClient, storedInputs } from '../support/scripted-client.ts';
import { runProgram } from '../support/run-program.ts';
import type { Ended } from '../support/run-program.ts';
import { problem } from '../support/scripted-fetch.ts';
import { startServer, unusedUrl } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { until } from '../support/until.ts';

let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const numbered = (count: number): TraceInput[] =>
  Array.from({ length: count }, (_, index) => ({ model: 'm', input: `t${index}` }));

function run(program: string, args: readonly string[]): Promise<Ended> {
  return runProgram(fileURLToPath(new URL(`programs/${program}`, import.meta.url)), args);
}

async function startTcpServer(onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    onConnection(socket);
  }).listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  return {
    url: `http://127.0.0.1:${(tcp.address() as AddressInfo).port}`,
    async stop() {
      for (const socket of sockets) socket.destroy();
      tcp.close();
      await once(tcp, 'close');
    },
  };
}

/** Accepts connections and never replies. */
function startSilentServer() {
  return startTcpServer(() => {});
}

/** Delays every reply of the server. */
function startSlowProxy(url: string, delayMs: number) {
  return startTcpServer((socket) => {
    const upstream = connect(Number(new URL(url).port), '127.0.0.1');
    upstream.on('error', () => socket.destroy());
    upstream.on('data', (data) => void setTimeout(() => socket.write(data), delayMs));
    socket.on('close', () => upstream.destroy());
    socket.pipe(upstream);
  });
}

async function endOf(url: string, key: string, settings: object = {}) {
  const ended = await run('enqueue-and-end.ts', [url, key, JSON.stringify(settings)]);
  const printed = JSON.parse(ended.stdout) as {
    stats: Stats[];
    errors: string[];
    listeners: number;
    waitedMs: number;
  };
  return { ...ended, ...printed };
}

const hourMs = 3_600_000;
/** A process that waits for one of these does not end in time, and is killed. */
const endless = { flushIntervalMs: hourMs, requestTimeoutMs: hourMs, retryDelayMs: hourMs };

test('a process that ends normally loses no trace and does not wait for the flush interval', async () => {
  const key = await server.freshKey();
  const settings = { ...endless, closeTimeoutMs: hourMs };
  const { code, stderr, stats } = await endOf(server.url, key, settings);
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual([stats[0]?.sent, stats[0]?.queued], [250, 0]);
  const reader = new TraceTally({ baseUrl: server.url, apiKey: key });
  assert.deepEqual(
    await storedInputs(reader),
    numbered(250).map(({ input }) => input),
  );
});

test('a hundred clients in a process share one exit listener, print no warning and lose no trace', async () => {
  const key = await server.freshKey();
  const settings = { clients: 100, traces: 3, closeTimeoutMs: 120_000, requestTimeoutMs: 120_000 };
  const { code, stderr, stats, listeners } = await endOf(server.url, key, settings);
  assert.deepEqual([code, stderr, listeners], [0, '', 1]);
  assert.ok(stats.every(({ sent, queued }) => sent === 3 && queued === 0));
  const reader = new TraceTally({ baseUrl: server.url, apiKey: key });
  assert.equal((await reader.traces.list()).total, 300);
});

test('if nothing listens at the URL, the process gives up after 1.5 s, and one error counts the dropped traces', async () => {
  for (const options of [{}, endless]) {
    const { code, stats, errors, waitedMs } = await endOf(await unusedUrl(), 'k', options);
    assert.equal(code, 0);
    assert.deepEqual([stats[0]?.failed, stats[0]?.queued], [250, 0]);
    assert.ok(waitedMs >= 1_490, `${waitedMs} ms`);
    assert.equal(errors.length, 1, errors.join('\n'));
    assert.match(
      errors[0] ?? '',
      /Dropped 250 traces at shutdown: nothing could be sent for 1500 ms\..*ECONNREFUSED/,
    );
  }
});

test('if the server accepts connections and never replies, the process gives up after 1.5 s as well', async () => {
  const { url, stop } = await startSilentServer();
  const { code, stats, errors } = await endOf(url, 'k', endless);
  await stop();
  assert.equal(code, 0);
  assert.equal(stats[0]?.failed, 250);
  assert.equal(errors.length, 1, errors.join('\n'));
  assert.match(
    errors[0] ?? '',
    /Dropped 250 traces at shutdown: nothing could be sent for 1500 ms\. .*did not reply/,
  );
});

test('if the server replies slowly, the process waits for it and loses no trace', async () => {
  const key = await server.freshKey();
  const slow = await startSlowProxy(server.url, 600);
  const { code, stats, errors, waitedMs } = await endOf(slow.url, key, {
    closeTimeoutMs: 120_000,
    requestTimeoutMs: 120_000,
  });
  await slow.stop();
  assert.deepEqual([code, errors], [0, []]);
  assert.deepEqual([stats[0]?.sent, stats[0]?.queued], [250, 0]);
  assert.ok(waitedMs >= 1_800, `three batches, ${waitedMs} ms`);
});

test('a process that awaits close() gives up after 1.5 s if the server is down', async () => {
  const options = { ...endless, close: true };
  const { code, stats, errors } = await endOf(await unusedUrl(), 'k', options);
  assert.equal(code, 0);
  assert.equal(stats[0]?.failed, 250);
  assert.match(
    errors.join('\n'),
    /^.*Dropped 250 traces at shutdown: nothing could be sent for 1500 ms\..*$/,
  );
});

test('closeTimeoutMs sets how long the end of the process waits for the server', async () => {
  const url = await unusedUrl();
  const ends = await Promise.all(
    [200, 3_000].map((closeTimeoutMs) => endOf(url, 'k', { ...endless, closeTimeoutMs })),
  );
  for (const [at, closeTimeoutMs] of [200, 3_000].entries()) {
    const { waitedMs = 0, errors = [] } = ends[at] ?? {};
    assert.ok(waitedMs >= closeTimeoutMs - 10, `${waitedMs} ms`);
    assert.match(errors.join('\n'), new RegExp(`nothing could be sent for ${closeTimeoutMs} ms`));
  }
});

test('without onError, traces that are dropped at the end are printed as one warning', async () => {
  const { code, stderr } = await run('enqueue-and-end.ts', [
    await unusedUrl(),
    'k',
    JSON.stringify({ traces: 3, isHookless: true }),
  ]);
  assert.equal(code, 0);
  assert.match(stderr, /^TraceTally: .*Dropped 3 traces at shutdown.*\n$/);
});

test('awaiting flush keeps the process alive during retry delays', async () => {
  const { code, stdout } = await run('await-flush.ts', [await unusedUrl(), 'k']);
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as Stats).failed, 1);
});

test('flush waits for traces that were enqueued before it, not for later ones', async () => {
  const { client, seen } = await scriptedClient(server, [], { maxBatchTraces: 10 });
  for (const trace of numbered(25)) client.enqueue(trace);
  const flushed = client.flush();
  client.enqueue({ model: 'm', input: 'later' });
  await flushed;
  assert.ok(client.stats().sent >= 25);
  assert.ok(seen.length >= 3);
  await client.flush();
  assert.equal(client.stats().sent, 26);
  await client.flush();
});

test('flush waits for a batch in flight and for a batch in its retry delay', async () => {
  const { client } = await scriptedClient(server, [
    problem(503, 'queue_full', { 'retry-after': '1' }),
  ]);
  client.enqueue({ model: 'm' });
  const first = client.flush();
  await until('the batch is in its retry delay', () => client.stats().retries === 1);
  await client.flush();
  assert.equal(client.stats().sent, 1);
  await first;
});

test('close stores what was enqueued before it; later traces are dropped and reported', async () => {
  const late = { model: 'm', input: 'while closing' };
  const scripted = await scriptedClient(
    server,
    (_request, index) => {
      // The client still accepts while it flushes, and what it accepts it sends, also when the last batch is on its way.
      if (index === 1) scripted.client.enqueue(late);
      return 'pass';
    },
    { flushIntervalMs: 60_000 },
  );
  const { client, errors, reader } = scripted;
  for (const trace of numbered(120)) client.enqueue(trace);
  await client.close();
  assert.deepEqual(
    await storedInputs(reader),
    [...numbered(120), late].map(({ input }) => input),
  );
  for (let at = 0; at < 3; at++) client.enqueue({ model: 'm' });
  assert.deepEqual([client.stats().sent, client.stats().dropped], [121, 3]);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['closed'],
  );
});

test('close can be called several times', async () => {
  const { client } = await scriptedClient(server);
  client.enqueue({ model: 'm' });
  await Promise.all([client.close(), client.close()]);
  await client.close();
  await client.flush();
  assert.equal(client.stats().sent, 1);
});

test('close continues as long as batches get through, however slowly', async (t) => {
  const { client, errors } = await scriptedClient(
    server,
    () => {
      t.mock.timers.tick(1_499);
      return 'pass';
    },
    { maxBatchTraces: 1, closeTimeoutMs: 1_500 },
  );
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const trace of numbered(25)) client.enqueue(trace);
  await client.close();
  assert.equal(client.stats().sent, 25);
  assert.deepEqual(errors, []);
});

test('close drops what cannot be sent, reports it once and ends in time', async (t) => {
  const { client, errors, seen } = await scriptedClient(server, () => 'hang', {
    maxBatchTraces: 10,
    closeTimeoutMs: 300,
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const trace of numbered(35)) client.enqueue(trace);
  const closed = client.close();
  await until('a batch is in flight', () => seen.length > 0);
  t.mock.timers.tick(299);
  assert.deepEqual([client.stats().failed, errors.length], [0, 0]);
  t.mock.timers.tick(1);
  await closed;
  assert.deepEqual([client.stats().failed, client.stats().queued], [35, 0]);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['given_up'],
  );
  assert.match(errors[0]?.message ?? '', /35 traces/);
});

test('await using closes the client at the end of its block', async () => {
  const { client, reader } = await scriptedClient(server);
  {
    await using block = client;
    block.enqueue({ model: 'm', input: 'in the block' });
  }
  assert.deepEqual(await storedInputs(reader), ['in the block']);
});

test('a client with an empty queue leaves no exit listener behind', async () => {
  const before = process.listenerCount('beforeExit');
  const { client } = await scriptedClient(server);
  client.enqueue({ model: 'm' });
  assert.equal(process.listenerCount('beforeExit'), before + 1);
  client.enqueue({ model: 'm' });
  await client.flush();
  assert.equal(process.listenerCount('beforeExit'), before);
});
