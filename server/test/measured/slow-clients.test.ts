import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.ts';
import { eventually } from '../support/eventually.ts';
import { setStage } from '../guarantees/crash-lab.ts';

const slowClients = 1000;
const closedMsMax = 15_000;
/** Only prevents a hang, but far below the five minutes that Node.js allows for a request by itself. */
const patienceMs = 120_000;

test('1,000 half-open requests do not keep others waiting and are closed within 15 s; none of them is stored', async (t) => {
  const { server, key, hostname, port, tearDown } = await setStage();
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const post = () =>
    fetch(`${server.url}/traces`, { method: 'POST', headers, body: '{"model":"honest"}' });
  try {
    const p99Before = await p99Ms(post);
    const head = `POST /traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
    const body = '{"model":"half"}';
    // Each stops somewhere else: in the request line, in the headers, before the body, in the body, in a chunk.
    const halves = [
      'POST /tra',
      head,
      `${head}Content-Length: ${body.length}\r\n\r\n`,
      `${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
      `${head}Transfer-Encoding: chunked\r\n\r\n10\r\n{"model":`,
    ];
    let begun = 0;
    const closed = Array.from({ length: slowClients }, (_, i) => {
      const socket = connect(port, hostname, () => (begun += 1));
      return closedBy(socket, halves[i % halves.length] ?? '');
    });
    const areOpen = () => begun === slowClients;
    await eventually(() => `${begun} of ${slowClients} connections`, patienceMs, areOpen, 10);
    const p99During = await p99Ms(post);
    let closings: number[] = [];
    void Promise.all(closed).then((all) => (closings = all));
    await eventually('the end of all half-open requests', patienceMs, () => closings.length > 0);
    const closedMs = Math.max(...closings);
    t.diagnostic(
      `p99 ${p99Before.toFixed(1)} ms before, ${p99During.toFixed(1)} ms beside them; all closed after ${Math.round(closedMs)} ms`,
    );
    // What the server allows, by its own clock: how late it looks at that clock depends on the machine.
    const { requestTimeoutMs, timeoutCheckIntervalMs } = limits;
    assert.ok(requestTimeoutMs + 2 * timeoutCheckIntervalMs <= closedMsMax);
    const page = (await (
      await fetch(`${server.url}/traces?limit=100`, { headers })
    ).json()) as Page;
    assert.equal(page.total, 400);
    assert.ok(page.traces.every(({ model }) => model === 'honest'));
  } finally {
    await tearDown();
  }
});

test('an aborted body is stored only if it was complete', async () => {
  const { server, key, hostname, port, tearDown } = await setStage();
  try {
    const text = (i: number) => `{"model":"aborted-${String(i).padStart(3, '0')}"}`;
    const isComplete = (i: number) => i % 4 === 0;
    for (let i = 0; i < 200; i++) {
      const body = text(i);
      const socket = connect(port, hostname);
      socket.on('error', () => {});
      const sent = isComplete(i) ? body : body.slice(0, 1 + (i % (body.length - 1)));
      socket.write(
        `POST /traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${sent}`,
      );
      // Gone without waiting for an answer: by a reset, or by an orderly end.
      await sleep(5);
      if (i % 2 === 0) socket.resetAndDestroy();
      else socket.end();
    }
    const headers = { authorization: `Bearer ${key}` };
    const read = async () =>
      (await (await fetch(`${server.url}/traces?limit=100`, { headers })).json()) as Page;
    await eventually('a complete body', patienceMs, async () => (await read()).total > 0);
    // Time for the server to store an incomplete body, which it must not do.
    await sleep(500);
    const page = await read();
    const stored = page.traces.map(({ model }) => Number(model.slice(-3)));
    assert.ok(stored.every(isComplete), 'an incomplete body was stored');
    assert.equal(new Set(stored).size, stored.length, 'one was stored twice');
  } finally {
    await tearDown();
  }
});

interface Page {
  total: number;
  traces: { model: string }[];
}

/** Sends the half and resolves, when the server has closed the socket, with the time that it was open. */
function closedBy(socket: Socket, half: string): Promise<number> {
  return new Promise((resolve) => {
    let openedMs = 0;
    socket.on('error', () => {});
    socket.on('close', () => resolve(performance.now() - openedMs));
    socket.on('end', () => socket.destroy());
    socket.resume();
    socket.on('connect', () => {
      openedMs = performance.now();
      socket.write(half);
    });
  });
}

async function p99Ms(post: () => Promise<Response>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 200; i++) {
    const startMs = performance.now();
    const reply = await post();
    assert.equal(reply.status, 201);
    await reply.arrayBuffer();
    times.push(performance.now() - startMs);
  }
  return times.sort((a, b) => a - b)[197] ?? 0;
}
