import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TraceTally } from '../../src/index.ts';
import type { TraceTallyError, TraceTallyOptions } from '../../src/index.ts';
import { traceShape } from '../../src/reply-shapes.ts';
import { startEndlessServer } from '../support/endless-server.ts';
import { until } from '../support/until.ts';

const mib = 1024 * 1024;
const program = fileURLToPath(new URL('programs/read-one-reply.ts', import.meta.url));

interface Ended {
  code: string;
  status: number | null;
  tookMs: number;
  memoryMib: number;
}

/** In a process of its own, which must end by itself and whose memory nothing else uses. */
async function callInProcess(
  url: string,
  name: 'overview' | 'record' | 'enqueue',
  settings: TraceTallyOptions = {},
): Promise<Ended> {
  const args = [program, url, name, JSON.stringify(settings)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 150_000 });
  return JSON.parse(stdout) as Ended;
}

const cases = [
  ['a read', 'overview', 200, 'identity', 'reply_too_large'],
  ['a read whose reply is packed', 'overview', 200, 'gzip', 'reply_too_large'],
  ['a refused read', 'overview', 403, 'identity', 'http_403'],
  ['a record that was stored', 'record', 201, 'identity', 'reply_too_large'],
  ['a record that was stored, packed', 'record', 201, 'gzip', 'reply_too_large'],
  ['a refused record', 'record', 500, 'identity', 'http_500'],
  ['a batch that was stored', 'enqueue', 201, 'identity', 'reply_too_large'],
  ['a refused batch', 'enqueue', 422, 'gzip', 'http_422'],
] as const;

for (const [what, name, status, encoding, code] of cases) {
  test(`an endless reply to ${what} is an error at the bound, with bounded memory`, async (t) => {
    const server = await startEndlessServer(status, encoding);
    try {
      // Only the bound ends the reply; the timeout of the request would come an hour later.
      const options = { maxReplyBytes: 32 * mib, requestTimeoutMs: 3_600_000 };
      const ended = await callInProcess(server.url, name, options);
      t.diagnostic(`${ended.tookMs.toFixed(0)} ms, ${ended.memoryMib.toFixed(0)} MiB`);
      assert.deepEqual([ended.code, ended.status], [code, status]);
      assert.ok(ended.memoryMib < 350, `${ended.memoryMib} MiB`);
      await until('the connection is closed', () => server.openReplies() === 0);
    } finally {
      await server.stop();
    }
  });
}

test('a reply may be as large as the bound and not a byte larger', async () => {
  const overview = JSON.stringify({
    total_calls: 1,
    avg_latency_ms: 2,
    total_cost_usd: 3,
    success_rate: 100,
    error_count: 0,
  });
  for (const [length, isRead] of [
    [2 * mib, true],
    [2 * mib + 1, false],
  ] as const) {
    const fetch = () => Promise.resolve(new Response(overview.padEnd(length)));
    const client = new TraceTally({ apiKey: 'k', fetch, maxReplyBytes: 2 * mib });
    const result = await client.analytics.overview().then(
      ({ total_calls }) => total_calls === 1,
      (error: TraceTallyError) => error.code !== 'reply_too_large',
    );
    assert.equal(result, isRead, `${length} bytes`);
  }
});

test('the reply to a write may be as large as the request', async () => {
  const trace = { model: 'm', input: 'é'.repeat(10 * mib) };
  const none = Object.fromEntries(
    Object.entries(traceShape).map(([name, kind]) => [name, kind.includes('null') ? null : 'x']),
  );
  const fetch = () => Promise.resolve(Response.json({ ...none, ...trace }, { status: 201 }));
  const client = new TraceTally({ apiKey: 'k', fetch });
  assert.equal((await client.record(trace))?.input?.length, trace.input.length);
});

/** A reply that does not end, from a fetch that does not listen to its signal. */
function deafFetch(pieceBytes: number, delayMs: number) {
  let onCancel: () => void;
  const cancelled = new Promise<void>((resolve) => (onCancel = resolve));
  const fetch = async (): Promise<Response> => {
    await sleep(delayMs);
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await sleep(1);
        controller.enqueue(new Uint8Array(pieceBytes));
      },
      cancel: () => onCancel(),
    });
    return new Response(body);
  };
  return { cancelled, fetch };
}

test('a reply that is too large, too slow or aborted is cancelled with any fetch', async () => {
  const cases: [pieceBytes: number, delayMs: number, options: TraceTallyOptions, code: string][] = [
    [mib, 0, { maxReplyBytes: 2 * mib }, 'reply_too_large'],
    [1, 0, { requestTimeoutMs: 50 }, 'no_reply'],
    [1, 100, { requestTimeoutMs: 50 }, 'no_reply'],
    [1, 0, {}, 'aborted'],
    [1, 100, {}, 'aborted'],
  ];
  for (const [pieceBytes, delayMs, options, code] of cases) {
    const { cancelled, fetch } = deafFetch(pieceBytes, delayMs);
    const client = new TraceTally({ apiKey: 'k', fetch, maxRetries: 0, ...options });
    const signal = code === 'aborted' ? AbortSignal.timeout(50) : undefined;
    await assert.rejects(
      client.analytics.overview({ signal }),
      (error: TraceTallyError) => error.code === code,
    );
    const late = sleep(120_000, 'not cancelled', { ref: false });
    assert.equal(await Promise.race([cancelled, late]), undefined, `${code} after ${delayMs} ms`);
  }
});

test('a response without a stream is read within the same bound', async () => {
  for (const [length, code] of [
    [100, 'bad_reply'],
    [2 * mib + 1, 'reply_too_large'],
  ] as const) {
    const text = (): Promise<string> => Promise.resolve(' '.repeat(length));
    const bare = { ok: true, status: 200, type: 'basic', headers: new Headers(), text };
    const client = new TraceTally({
      apiKey: 'k',
      fetch: () => Promise.resolve(bare as unknown as Response),
      maxReplyBytes: 2 * mib,
      maxRetries: 0,
    });
    await assert.rejects(
      client.analytics.overview(),
      (error: TraceTallyError) => error.code === code,
    );
  }
});
