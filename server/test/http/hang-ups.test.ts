import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.ts';
import { eventually } from '../support/eventually.ts';
import * as http from './helpers.ts';

const mib = 1024 * 1024;
let service: http.BrokenService;
/** Reads and writes of the store take a moment, so that callers can hang up meanwhile. */
const slowMs = 60;
let largeId = '';
/** Calls of the store that have begun and not ended. */
let callsUnderWay = 0;

async function slowly<T>(call: () => Promise<T>): Promise<T> {
  callsUnderWay += 1;
  try {
    const result = await call();
    await sleep(slowMs);
    return result;
  } finally {
    callsUnderWay -= 1;
  }
}

before(async () => {
  service = await http.startBrokenService((store) => ({
    append: (...args) => slowly(() => store.append(...args)),
    trace: (...args) => slowly(() => store.trace(...args)),
    tallies: (...args) => slowly(() => store.tallies(...args)),
  }));
  const large = await post('/traces', { model: 'm', input: 'x'.repeat(2 * mib) });
  largeId = large.json.id;
  const names = Array.from({ length: limits.groupChunkRows }, (_, i) => ({ model: `m${i}` }));
  assert.equal((await post('/traces/batch', { traces: names })).status, 201);
});
after(() => service.stop());

function post(path: string, body: unknown) {
  const headers = { ...http.bearer(service.key), ...http.jsonType };
  return http.send(service.url, { method: 'POST', path, body: JSON.stringify(body), headers });
}

const get = (path: string) => http.send(service.url, { path, headers: http.bearer(service.key) });

/** Sends the bytes and hangs up after a while. */
function hangUp(bytes: string, afterMs: number): Promise<void> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(bytes, () => setTimeout(() => socket.destroy(), afterMs));
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
}

const head = (startLine: string, ...lines: string[]): string =>
  `${[startLine, 'host: x', `authorization: Bearer ${service.key}`, ...lines].join('\r\n')}\r\n\r\n`;

/** Resolves when the requests of callers that hung up have ended, too. */
async function allRequestsEnded(): Promise<void> {
  await eventually('the end of all calls of the store', 120_000, () => callsUnderWay === 0, 10);
  // A request that follows runs after whatever those calls have left to do.
  assert.equal((await get('/healthz')).status, 200);
}

async function assertBudgetsWhole(): Promise<void> {
  const held = () => [service.bodyBudget.usedBytes, service.replyBudget.usedBytes];
  await eventually(
    () => `the return of what bodies and replies hold (${held().join(' and ')} bytes)`,
    120_000,
    () => held().every((bytes) => bytes === 0),
    10,
  );
}

test('a caller that hangs up while its large trace is read holds no part of the budgets', async () => {
  for (let i = 0; i < 20; i++) await hangUp(head(`GET /traces/${largeId} HTTP/1.1`), slowMs / 2);
  await allRequestsEnded();
  await assertBudgetsWhole();
  assert.equal((await get(`/traces/${largeId}`)).status, 200);
});

test('a caller that hangs up while its batch is committed holds no part of the budgets', async () => {
  const traces = Array.from({ length: 10 }, () => ({ model: 'm', input: 'x'.repeat(100_000) }));
  const body = JSON.stringify({ traces });
  const lines = ['content-type: application/json', `content-length: ${body.length}`];
  for (let i = 0; i < 20; i++) {
    await hangUp(`${head('POST /traces/batch HTTP/1.1', ...lines)}${body}`, slowMs / 2);
  }
  await allRequestsEnded();
  await assertBudgetsWhole();
});

test('a caller that hangs up while a long list of names is opened frees its slot', async () => {
  // Twice as many as may be open at once.
  for (let i = 0; i < 2 * limits.wideReadsMax; i++) {
    await hangUp(head('GET /analytics/by-model HTTP/1.1'), slowMs / 2);
  }
  await allRequestsEnded();
  const { status, json } = await get('/analytics/by-model');
  assert.equal(status, 200);
  assert.equal(json.length, limits.groupChunkRows + 1);
  await assertBudgetsWhole();
});

test('every route and method gives back the budget of its body', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const path of ['/session', '/session/preview', '/traces', '/traces/batch', '/healthz']) {
      const headers = { ...http.bearer(service.key), ...http.jsonType };
      await http.send(service.url, { method, path, body: '{"x":1}', headers });
    }
  }
  await assertBudgetsWhole();
});

test('requests pipelined after a reply that closes the connection are not executed', async () => {
  const total = async () => (await get('/traces?limit=1&omit=input')).json.total as number;
  const before = await total();
  const body = '{"model":"behind"}';
  const lines = ['content-type: application/json', `content-length: ${body.length}`];
  const second = `${head('POST /traces HTTP/1.1', ...lines)}${body}`;
  for (const first of [
    head('GET /healthz HTTP/1.1', 'connection: close'),
    head('GET /healthz HTTP/1.0'),
    // Refused, and the reply closes the connection.
    head('GET /healthz HTTP/1.1', 'host: y'),
  ]) {
    await hangUp(`${first}${second}`, 4 * slowMs);
  }
  // Longer than a write takes: none was begun.
  await sleep(2 * slowMs);
  assert.equal(await total(), before);
});

test('as many pipelined requests as may wait are all answered, and a peer that sends more is disconnected', async () => {
  const { hostname, port } = new URL(service.url);
  const say = (count: number): Promise<{ answers: number; isClosed: boolean }> =>
    new Promise((resolve) => {
      let text = '';
      const answers = () => text.match(/HTTP\/1\.1 200/g)?.length ?? 0;
      const socket = connect(Number(port), hostname, () =>
        socket.write(head('GET /healthz HTTP/1.1').repeat(count)),
      );
      socket.on('data', (data: Buffer) => {
        text += data.toString();
        if (answers() < count) return;
        resolve({ answers: answers(), isClosed: false });
        socket.destroy();
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve({ answers: answers(), isClosed: true }));
      socket.setTimeout(120_000, () => socket.destroy());
    });
  const within = limits.pipelinedRequestsMax + 1;
  assert.deepEqual(await say(within), { answers: within, isClosed: false });
  const limit = Error.stackTraceLimit;
  assert.equal((await say(10 * within)).isClosed, true);
  assert.equal(Error.stackTraceLimit, limit);
});
