import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.ts';
import type { ServerProcess } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import {
  compareWithStore,
  readAcknowledged,
  setStage,
  startLoad,
} from '../guarantees/crash-lab.ts';
import type { Stage } from '../guarantees/crash-lab.ts';

test('while the writer is stalled memory stays bounded and callers get 503 with Retry-After; then it recovers', async (t) => {
  const { server, key, databasePath, tearDown } = await setStage();
  const beside = new DatabaseSync(databasePath, { timeout: 5000 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1000 });
  const large = JSON.stringify({ model: 'm', input: 'x'.repeat(256 * 1024) });
  const post = () => postRaw(server.url, key, large, agent);
  try {
    assert.equal((await post()).status, 201);
    const memoryBefore = residentBytes(server);
    // Another process holds the file, so that the writer must wait.
    beside.exec('begin immediate');
    let refusals = 0;
    const answers = Array.from({ length: 600 }, async () => {
      const reply = await post();
      if (reply.status === 503 && reply.retryAfter === '1') refusals += 1;
      return reply;
    });
    // The stall itself: as long as it lasts, callers go on sending.
    await sleep(2000);
    await eventually('a full queue', 120_000, () => refusals > 0);
    const memoryStalled = residentBytes(server);
    const whileStalled = await fetch(`${server.url}/traces?limit=1&omit=input`, {
      headers: { authorization: `Bearer ${key}` },
    });
    assert.equal(whileStalled.status, 200, 'reads go on');
    beside.exec('commit');
    const replies = await Promise.all(answers);
    let attempts = 0;
    await eventually(
      'a write after the stall',
      120_000,
      async () => {
        attempts += 1;
        return (await post()).status === 201;
      },
      20,
    );

    const stored = replies.filter(({ status }) => status === 201).length;
    const refused = replies.filter(({ status }) => status === 503);
    // On a slow machine a request may be refused because its body has not come in time.
    const late = replies.filter(({ status }) => status === 408);
    assert.equal(stored + refused.length + late.length, 600);
    // A write that has waited too long for the file is refused for five seconds. On a slow machine that is some of them.
    assert.ok(refused.every(({ retryAfter }) => retryAfter === '1' || retryAfter === '5'));
    const grown = memoryStalled - memoryBefore;
    t.diagnostic(
      `${stored} stored, ${refused.length} refused; memory grew by ${Math.round(grown / 1e6)} MB; ` +
        `recovered after ${attempts} attempts`,
    );
    // What waits is held twice for a moment, here and on its way to the writer's thread, and refused bodies are garbage for a while.
    assert.ok(grown < 5 * limits.queueBytesMax, `memory grew by ${Math.round(grown / 1e6)} MB`);
    assert.ok(attempts <= 5, `${attempts} attempts`);
    const { total } = (await (
      await fetch(`${server.url}/traces?limit=1&omit=input`, {
        headers: { authorization: `Bearer ${key}` },
      })
    ).json()) as { total: number };
    assert.equal(total, stored + 2, 'what was refused was not stored');
  } finally {
    beside.close();
    agent.destroy();
    await tearDown();
  }
});

test('a hundred slow uploads of the largest size do not block another write', async () => {
  const { server, key, hostname, port, tearDown } = await setStage();
  const agent = new Agent();
  let refusals = '';
  try {
    const sockets = Array.from({ length: 100 }, () => {
      const socket = connect(port, hostname);
      socket.on('error', () => {});
      socket.on('data', (data: Buffer) => (refusals += data.toString()));
      socket.write(
        `POST /traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${limits.bodyBytesMax}\r\n\r\n{"model":`,
      );
      return socket;
    });
    const body = JSON.stringify({ model: 'm', input: 'x'.repeat(4 * 1024 * 1024) });
    for (let i = 0; i < 5; i++) {
      assert.equal((await postRaw(server.url, key, body, agent)).status, 201);
    }
    // On a slow machine an upload may meanwhile have taken longer than a request may take.
    assert.equal(refusals.replaceAll(/^HTTP\/1\.1 408 [^]*?(?=HTTP\/1\.1|$)/gm, ''), '');
    for (const socket of sockets) socket.destroy();
  } finally {
    agent.destroy();
    await tearDown();
  }
});

test('throughput does not collapse under far more clients than the service can handle', async (t) => {
  const { server, databasePath, folder, teams, tearDown } = await setStage(4);
  try {
    // Warm, then in turns, so that a noisy machine is as noisy for both.
    await goodput(server, folder, 32, 0, teams);
    const few: number[] = [];
    const many: number[] = [];
    let ratio = 0;
    // More rounds only if the machine was busy in the wrong ones: after a collapse, more of them do not help.
    for (let round = 1; round <= 3 || (round <= 9 && !(ratio > 0.5)); round++) {
      few.push(await goodput(server, folder, 32, 2 * round, teams));
      many.push(await goodput(server, folder, 1000, 2 * round + 1, teams));
      ratio = median(many) / median(few);
    }
    t.diagnostic(
      `${Math.round(median(few))} a second with 32 clients, ${Math.round(median(many))} with 1,000: ratio ${ratio.toFixed(2)}`,
    );
    // The goal is 0.9, and it is printed. The test fails only on a collapse, since the machine may be busy.
    assert.ok(ratio > 0.5, `goodput fell to ${ratio.toFixed(2)} of its peak`);
  } finally {
    await server.end('SIGTERM');
    const result = await compareWithStore(databasePath, folder, teams);
    assert.deepEqual([result.lost, result.twice], [[], []]);
    await tearDown();
  }
});

/** Acknowledged traces a second, once all clients are at work. */
async function goodput(
  server: ServerProcess,
  folder: string,
  clients: number,
  round: number,
  teams: Stage['teams'],
): Promise<number> {
  const load = startLoad(server.url, folder, clients, round, teams);
  await load.begun();
  // Time to warm up, then time to count.
  await sleep(300);
  const [startMs, before] = [performance.now(), readAcknowledged(folder).length];
  await sleep(1000);
  const [endMs, after] = [performance.now(), readAcknowledged(folder).length];
  await load.end();
  return ((after - before) * 1000) / (endMs - startMs);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function residentBytes({ child }: ServerProcess): number {
  return (
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024
  );
}

function postRaw(
  url: string,
  key: string,
  body: string,
  agent: Agent,
): Promise<{ status: number; retryAfter: string | undefined }> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    request(`${url}/traces`, { agent, method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] }),
      );
    })
      .on('error', reject)
      .end(body);
  });
}
