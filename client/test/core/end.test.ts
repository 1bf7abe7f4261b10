import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { TraceTally } from '../../src/index.ts';
import type { Stats, TraceInput } from '../../src/index.ts';
import { scriptedClient, storedInputs } from '../support/scripted-client.ts';
import { problem } from '../support/scripted-fetch.ts';
import type { Step } from '../support/scripted-fetch.ts';
import { addressOfNobody, startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';

let server: LiveServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const numbered = (count: number): TraceInput[] =>
  Array.from({ length: count }, (_, index) => ({ model: 'm', input: `t${index}` }));

interface Ended {
  code: number | null;
  stderr: string;
  tookMs: number;
  stdout: string;
}

async function run(program: string, args: readonly string[]): Promise<Ended> {
  const path = fileURLToPath(new URL(`programs/${program}`, import.meta.url));
  const startedMs = performance.now();
  const child = spawn(process.execPath, [path, ...args]);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr, stdout, tookMs: performance.now() - startedMs };
}

async function endOf(url: string, key: string, settings: object = {}) {
  const ended = await run('enqueue-and-end.ts', [url, key, JSON.stringify(settings)]);
  const told = JSON.parse(ended.stdout) as { stats: Stats[]; errors: string[]; listeners: number };
  return { ...ended, ...told };
}

test('a process that ends by itself loses nothing, and does not wait for the interval', async () => {
  const key = await server.freshKey();
  const { code, stderr, stats, tookMs } = await endOf(server.url, key, { flushIntervalMs: 60_000 });
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual([stats[0]?.sent, stats[0]?.queued], [250, 0]);
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
  const reader = new TraceTally({ baseUrl: server.url, apiKey: key });
  assert.deepEqual(
    await storedInputs(reader),
    numbered(250).map(({ input }) => input),
  );
});

test('a hundred clients in a process share one listener, print no warning and lose nothing', async () => {
  const key = await server.freshKey();
  const settings = { clients: 100, traces: 3 };
  const { code, stderr, stats, listeners } = await endOf(server.url, key, settings);
  assert.deepEqual([code, stderr, listeners], [0, '', 1]);
  assert.ok(stats.every(({ sent, queued }) => sent === 3 && queued === 0));
  const reader = new TraceTally({ baseUrl: server.url, apiKey: key });
  assert.equal((await reader.traces.list()).total, 300);
});

test('a process whose server cannot be reached ends in bounded time and says what was lost', async () => {
  const url = await addressOfNobody();
  const { code, stats, errors, tookMs } = await endOf(url, 'k', { closeTimeoutMs: 700 });
  assert.equal(code, 0);
  assert.deepEqual([stats[0]?.failed, stats[0]?.queued], [250, 0]);
  assert.ok(tookMs >= 700 && tookMs < 9_000, `${tookMs} ms`);
  assert.match(errors.at(-1) ?? '', /250 traces given up at the end/);
});

test('a process whose server takes requests and never answers ends in bounded time as well', async () => {
  const hole = createServer(() => {}).listen(0, '127.0.0.1');
  await once(hole, 'listening');
  const { port } = hole.address() as AddressInfo;
  const { code, stats, tookMs } = await endOf(`http://127.0.0.1:${port}`, 'k', {
    closeTimeoutMs: 700,
    requestTimeoutMs: 1_000,
  });
  hole.close();
  assert.equal(code, 0);
  assert.equal(stats[0]?.failed, 250);
  assert.ok(tookMs < 9_000, `${tookMs} ms`);
});

test('to wait for a flush keeps the process alive over the pauses between tries', async () => {
  const { code, stdout } = await run('await-flush.ts', [await addressOfNobody(), 'k']);
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as Stats).failed, 1);
});

test('flush waits for all that came before it, and not for what comes after', async () => {
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

test('flush waits for a batch that is under way already, and for one in its pause', async () => {
  const { client } = await scriptedClient(server, [
    problem(503, 'queue_full', { 'retry-after': '1' }),
  ]);
  client.enqueue({ model: 'm' });
  const first = client.flush();
  await sleep(50);
  await client.flush();
  assert.equal(client.stats().sent, 1);
  await first;
});

test('flush waits for a trace whose price is still being looked up', async () => {
  const { client, reader } = await scriptedClient(server);
  client.measure({ model: 'gpt-4o' }, (set) => set({ prompt_tokens: 9, completion_tokens: 7 }));
  assert.equal(client.stats().queued, 0, 'the price list is loaded with the first call');
  await client.flush();
  const { traces } = await reader.traces.list();
  assert.deepEqual([traces.length, traces[0]?.prompt_tokens], [1, 9]);
  assert.ok((traces[0]?.cost_usd ?? 0) > 0);
});

test('what was enqueued before close is stored when close resolves; what comes after is dropped and told', async () => {
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

test('close may be called any number of times', async () => {
  const { client } = await scriptedClient(server);
  client.enqueue({ model: 'm' });
  await Promise.all([client.close(), client.close()]);
  await client.close();
  await client.flush();
  assert.equal(client.stats().sent, 1);
});

test('close goes on for as long as something gets through, however slow', async () => {
  const { client, errors } = await scriptedClient(
    server,
    async (): Promise<Step> => {
      await sleep(150);
      return 'pass';
    },
    { maxBatchTraces: 1, closeTimeoutMs: 400 },
  );
  for (const trace of numbered(6)) client.enqueue(trace);
  await client.close();
  assert.equal(client.stats().sent, 6);
  assert.deepEqual(errors, []);
});

test('close gives up what cannot be sent, tells it once, and is done in time', async () => {
  const { client, errors } = await scriptedClient(server, () => 'hang', {
    maxBatchTraces: 10,
    closeTimeoutMs: 300,
  });
  for (const trace of numbered(35)) client.enqueue(trace);
  const startedMs = performance.now();
  await client.close();
  assert.ok(performance.now() - startedMs < 5_000);
  assert.deepEqual([client.stats().failed, client.stats().queued], [35, 0]);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['given_up'],
  );
  assert.match(errors[0]?.message ?? '', /35 traces/);
});

test('a client at the end of its block is closed', async () => {
  const { client, reader } = await scriptedClient(server);
  {
    await using block = client;
    block.enqueue({ model: 'm', input: 'in the block' });
  }
  assert.deepEqual(await storedInputs(reader), ['in the block']);
});

test('a client that has nothing to send leaves no listener behind', async () => {
  const before = process.listenerCount('beforeExit');
  const { client } = await scriptedClient(server);
  client.enqueue({ model: 'm' });
  assert.equal(process.listenerCount('beforeExit'), before + 1);
  client.enqueue({ model: 'm' });
  await client.flush();
  assert.equal(process.listenerCount('beforeExit'), before);
});
