import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
before(async () => {
  service = await startTestService({ flags: { 'log-level': 'info' } });
});
after(() => service.stop());

test('callers that hang up while their question waits are no errors in the log', async () => {
  const { key } = await service.keyFor();
  const traces = Array.from({ length: 1_000 }, (_, i) => ({
    model: 'm',
    input: `number ${i} ${'x'.repeat(2_000)}`,
  }));
  for (let batch = 0; batch < 3; batch++) {
    assert.equal((await service.call(key, 'POST', '/traces/batch', { traces })).status, 201);
  }
  const search = '/traces?q=nowhere&limit=1';
  const { hostname, port } = new URL(service.url);
  // One search of a team runs at a time. The others wait, and are not begun any more.
  await Promise.all(
    Array.from({ length: 12 }, async () => {
      const socket = connect(Number(port), hostname);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(`GET ${search} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
      // Far less than a search takes.
      setTimeout(() => socket.destroy(), 20);
      await closed;
    }),
  );
  // Runs after all of them.
  assert.equal((await service.call(key, 'GET', search)).status, 200);
  assert.deepEqual(loggedErrors(), []);
});

test('callers that hang up before they have read the reply to a large batch are no errors in the log', async () => {
  const { key } = await service.keyFor();
  const traces = Array.from({ length: 200 }, () => ({ model: 'm', input: 'x'.repeat(5_000) }));
  const body = JSON.stringify({ traces });
  const { hostname, port } = new URL(service.url);
  for (let i = 0; i < 20; i++) {
    const socket = connect(Number(port), hostname);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(
      `POST /traces/batch HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    // Before the batch is stored, while it is being stored, or while its reply is being sent.
    setTimeout(() => socket.destroy(), 3 * i);
    socket.once('data', () => socket.destroy());
    await closed;
  }
  // Stored after all of them.
  assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
  assert.deepEqual(loggedErrors(), []);
});

function loggedErrors(): string[] {
  return service
    .log()
    .split('\n')
    .filter((line) => line.includes('"level":"error"'));
}
