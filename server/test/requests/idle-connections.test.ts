import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../support/eventually.ts';
import { startTestService } from '../support/service.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const connections = 30;
const bodyChars = 1_000_000;

test('connections that are kept open hold nothing of the bodies that were sent on them', async (t) => {
  const service = await startTestService();
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  t.after(async () => {
    agent.destroy();
    await service.stop();
  });
  const { key } = await service.keyFor();
  const post = (body: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const sent = request(`${service.url}/traces`, { method: 'POST', agent, headers });
      sent.on('error', reject);
      sent.on('response', (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode));
      });
      sent.end(body);
    });
  const postAll = (input: string) =>
    Promise.all(
      Array.from({ length: connections }, () => post(JSON.stringify({ model: 'm', input }))),
    );
  await postAll('warm up');
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  assert.deepEqual(
    [...new Set(await postAll('x'.repeat(bodyChars)))],
    [201],
    'every large trace is stored',
  );
  const grownMb = (): number => {
    collectGarbage();
    return (process.memoryUsage().heapUsed - before) / 1e6;
  };
  const boundMb = (connections * bodyChars) / 1e6 / 3;
  // The last replies may still be on their way through the event loop.
  await eventually(
    () => `at most ${boundMb} MB, not ${grownMb()}`,
    120_000,
    () => grownMb() < boundMb,
    100,
  );
});
