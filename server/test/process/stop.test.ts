import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { allTraces, call, postTrace, startServer, toolInFolder } from '../cli/helpers.ts';
import type { NewKeyJson, ProblemJson, Tool, TraceJson } from '../cli/helpers.ts';
import { eventually } from '../support/eventually.ts';
import type { ServerProcess } from '../support/cli.ts';
import { assertVerifyClean, startCrowd } from './helpers.ts';

interface Stage {
  tool: Tool;
  server: ServerProcess;
  key: string;
}

async function setStage(t: TestContext, env: Record<string, string> = {}): Promise<Stage> {
  const tool = toolInFolder(t);
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'stop');
  return { tool, key, server: await startServer(t, tool, [], env) };
}

/** A server that waits for hundreds of seconds in place of five, before it gives up on requests and connections. */
const patient = {
  NODE_OPTIONS: `--import=${new URL('../support/long-timers.ts', import.meta.url).href}`,
};

/** A POST whose body comes in two halves, with as much time between them as the caller takes. */
async function slowPost(
  url: string,
  key: string,
): Promise<{ finish(): Promise<{ status: number; id: string }> }> {
  const body = Buffer.from(JSON.stringify({ model: 'slow', input: 'x'.repeat(1000) }));
  const post = request(`${url}/traces`, {
    method: 'POST',
    // The client never hangs up by itself: without a timeout, an agent keeps its connections open.
    agent: new Agent({ keepAlive: true }),
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.length,
      // Its interim reply shows that the server has begun with the request.
      expect: '100-continue',
    },
  });
  const begun = once(post, 'continue', { signal: AbortSignal.timeout(120_000) });
  const answered = once(post, 'response') as Promise<[IncomingMessage]>;
  // Looked at only by finish; until then a failure must not end the process.
  answered.catch(() => {});
  post.write(body.subarray(0, 500));
  await begun;
  return {
    async finish() {
      post.end(body.subarray(500));
      const [response] = await answered;
      let text = '';
      for await (const chunk of response) text += String(chunk);
      return { status: response.statusCode ?? 0, id: (JSON.parse(text) as TraceJson).id };
    },
  };
}

function refusesConnections(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
}

/** The last answer ends a patient service: it does not wait for clients to hang up, and no supervisor has to kill it. */
async function promptly(ended: Promise<number | null>): Promise<number | null> {
  const { code } = await eventually('the end', 120_000, async () => ({ code: await ended }));
  return code;
}

/** The store as a new server on the same file shows it. */
async function idsAfterRestart(t: TestContext, { tool, key }: Stage): Promise<string[]> {
  const server = await startServer(t, tool);
  return (await allTraces(server.url, key)).map(({ id }) => id);
}

/** What a service answers between SIGTERM and its end; null if this process was too slow to ask in time. */
async function answersDuringNotice({ server, key }: Stage) {
  try {
    const ready = await eventually(
      '/readyz with 503',
      120_000,
      async () => {
        const { status, body } = await call<ProblemJson>(`${server.url}/readyz`, null);
        return status === 200 ? null : { status, code: body.code };
      },
      10,
    );
    const late = await postTrace(server.url, key);
    const page = await call(`${server.url}/traces`, key);
    const health = await call(`${server.url}/healthz`, null);
    return { ready, late, statuses: [page.status, health.status] };
  } catch (error) {
    if (error instanceof TypeError && error.message === 'fetch failed') return null;
    throw error;
  }
}

test('on SIGTERM /readyz turns to 503 while the service still serves, then it ends with 0', async (t) => {
  // It still serves for half a second, so a busy machine may need more than one attempt.
  for (let attempt = 1; ; attempt++) {
    const stage = await setStage(t);
    const { server, key } = stage;
    const ids = [(await postTrace(server.url, key)).body.id];
    assert.equal((await call(`${server.url}/readyz`, null)).status, 200);

    const ended = server.end('SIGTERM');
    const answers = await answersDuringNotice(stage);
    assert.equal(await ended, 0);
    assert.ok(answers !== null || attempt < 10, 'it took no connection after SIGTERM');
    if (answers === null) continue;

    assert.deepEqual(answers.ready, { status: 503, code: 'store_unavailable' });
    assert.equal(answers.late.status, 201);
    assert.deepEqual(answers.statuses, [200, 200]);
    ids.unshift(answers.late.body.id);
    await assert.rejects(postTrace(server.url, key));
    assert.deepEqual(await idsAfterRestart(t, stage), ids);
    return;
  }
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`a request that is under way at ${signal} is finished and stored`, async (t) => {
    const stage = await setStage(t, patient);
    const { server, key } = stage;
    const slow = [await slowPost(server.url, key), await slowPost(server.url, key)];
    const ended = server.end(signal);
    // Load balancers get some time to notice before that.
    const isClosed = () => refusesConnections(server.url);
    await eventually('a server that takes no new connections', 120_000, isClosed);
    await assert.rejects(postTrace(server.url, key), 'it still takes new connections');
    const answers = await Promise.all(slow.map((post) => post.finish()));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201],
    );
    assert.equal(await promptly(ended), 0);
    const stored = await idsAfterRestart(t, stage);
    assert.deepEqual(stored.sort(), answers.map(({ id }) => id).sort());
  });

  test(`${signal} under 32 clients loses no acknowledged trace`, async (t) => {
    const stage = await setStage(t, patient);
    const { server, key, tool } = stage;
    const crowd = startCrowd(32, server.url, key);
    await eventually('acknowledged traces', 120_000, () => crowd.acknowledged.length > 300);
    const atSignal = crowd.acknowledged.length;
    assert.equal(await promptly(server.end(signal)), 0);
    await crowd.ended;
    assert.deepEqual(crowd.others, [], 'a request was answered with something else than 201');
    assert.ok(crowd.acknowledged.length > atSignal, 'nothing was under way at the signal');

    const stored = await idsAfterRestart(t, stage);
    assert.equal(new Set(crowd.acknowledged).size, crowd.acknowledged.length);
    // All that was acknowledged is there, and nothing that was not: every request got its answer.
    assert.deepEqual(stored.sort(), crowd.acknowledged.sort());
    await assertVerifyClean(tool);
  });
}

test('a request that is never complete does not block the stop', async (t) => {
  const { server, key } = await setStage(t);
  const half = await slowPost(server.url, key);
  const startMs = performance.now();
  // A stop that takes too long ends with 1.
  assert.equal(await server.end('SIGTERM'), 0);
  const ms = performance.now() - startMs;
  assert.ok(ms > 3000, `it took only ${Math.round(ms)} ms`);
  await assert.rejects(half.finish());
});

test('an acknowledged trace survives kill -9 under 32 clients', async (t) => {
  const stage = await setStage(t);
  const { server, key, tool } = stage;
  const crowd = startCrowd(32, server.url, key);
  await eventually('acknowledged traces', 120_000, () => crowd.acknowledged.length > 500);
  assert.equal(await server.end('SIGKILL'), null);
  await crowd.ended;
  assert.deepEqual(crowd.others, []);

  const again = await startServer(t, tool);
  const stored = new Set((await allTraces(again.url, key)).map(({ id }) => id));
  const lost = crowd.acknowledged.filter((id) => !stored.has(id));
  assert.deepEqual(lost, []);
  // At most one trace a client may be stored without its answer having arrived.
  assert.ok(stored.size - crowd.acknowledged.length <= 32);
  for (const id of crowd.acknowledged.slice(-32)) {
    assert.equal((await call(`${again.url}/traces/${id}`, key)).status, 200);
  }
  await assertVerifyClean(tool);
  assert.equal((await postTrace(again.url, key)).status, 201);
});
