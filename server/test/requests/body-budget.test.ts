import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { eventually } from '../support/eventually.ts';
import type { Answer } from '../support/service.ts';
import * as http from '../http/helpers.ts';

const mib = 1024 * 1024;
type Place = Pick<http.BrokenService, 'url' | 'key' | 'bodyBudget'>;

let service: http.BrokenService;
const here = (): Place => service;

before(async () => {
  service = await http.startBrokenService({});
});
after(() => service.stop());

function head({ key }: Place, path: string, ...lines: string[]): string {
  const all = [`POST ${path} HTTP/1.1`, 'host: x', `authorization: Bearer ${key}`];
  return `${[...all, 'content-type: application/json', ...lines].join('\r\n')}\r\n\r\n`;
}

function post(
  place: Place,
  body: string | Uint8Array,
  path = '/traces/batch',
  headers: Record<string, string> = { 'content-encoding': 'gzip' },
): Promise<Answer> {
  const own = { ...http.bearer(place.key), ...http.jsonType };
  return http.send(place.url, { method: 'POST', path, body, headers: { ...own, ...headers } });
}

/** An upload that has begun, sends these bytes of its body and does not go on. It notes whether it was answered. */
function holdUpload(place: Place, path: string, announced: number, sent: number) {
  const { hostname, port } = new URL(place.url);
  const upload = { socket: connect(Number(port), hostname), said: '' };
  upload.socket.write(`${head(place, path, `content-length: ${announced}`)}${'{'.repeat(sent)}`);
  upload.socket.on('error', () => {});
  upload.socket.on('data', (data: Buffer) => (upload.said += data.toString()));
  return upload;
}

/** What is given back may take a moment, since the server sees a hang-up late. */
async function assertBudgetWhole({ bodyBudget }: Place, waitMsMax = 30_000): Promise<void> {
  const isWhole = () => bodyBudget.usedBytes === 0;
  const what = () => `the return of ${bodyBudget.usedBytes} bytes`;
  await eventually(what, waitMsMax, isWhole, 10);
}

async function assertHolds({ bodyBudget }: Place, bytes: number): Promise<void> {
  const isHeld = () => bodyBudget.usedBytes >= bytes;
  await eventually(() => `${bodyBudget.usedBytes} of ${bytes} bytes held`, 120_000, isHeld, 10);
}

test('the budget is whole at the start, and this check notices a part that is taken', async () => {
  await assertBudgetWhole(here());
  const upload = holdUpload(here(), '/traces', 1_000, 100);
  await assertHolds(here(), 100);
  await assert.rejects(assertBudgetWhole(here(), 100), /return of 100 bytes/);
  upload.socket.destroy();
  await assertBudgetWhole(here());
});

test('a sign-in gives its share back, though its caller is known only at the end', async () => {
  for (let i = 0; i < 3; i++) {
    const body = JSON.stringify({ key: i === 1 ? 'unknown' : here().key });
    const headers = { ...http.jsonType };
    const { status } = await http.send(here().url, {
      method: 'POST',
      path: '/session',
      body,
      headers,
    });
    assert.equal(status, i === 1 ? 401 : 201);
  }
  await assertBudgetWhole(here());
});

test('a body that is announced and not sent uses no budget', async () => {
  const uploads = Array.from({ length: 20 }, () =>
    holdUpload(here(), '/traces/batch', limits.batchBodyBytesMax, 10),
  );
  await assertHolds(here(), 20 * 10);
  assert.equal(here().bodyBudget.usedBytes, 20 * 10);
  assert.equal((await post(here(), '{"model":"m"}', '/traces', {})).status, 201);
  for (const { socket } of uploads) socket.destroy();
  await assertBudgetWhole(here());
});

test('beyond its share of the budget a key is refused, and the rest stays free for others', async () => {
  const uploads = Array.from({ length: 8 }, () =>
    holdUpload(here(), '/traces/batch', limits.batchBodyBytesMax, limits.batchBodyBytesMax - 1),
  );
  const isRefused = ({ said }: { said: string }): boolean => said.startsWith('HTTP/1.1 503');
  const refused = () => uploads.filter(isRefused).length;
  await eventually(
    () => `${refused()} of 5 refusals`,
    120_000,
    () => refused() >= 5,
    10,
  );
  assert.ok(here().bodyBudget.usedBytes <= limits.bodiesBytesMax / 3);
  for (const { socket } of uploads) socket.destroy();
  await assertBudgetWhole(here());
});

/** A small body whose trailer announces a large size: the budget is soon used up if it is not given back. */
function announcing(bytes: number, packed: Buffer): Buffer {
  const copy = Buffer.from(packed);
  copy.writeUInt32LE(bytes, copy.length - 4);
  return copy;
}

const spaces = (text: string, bytes: number): Buffer =>
  gzipSync(Buffer.concat([Buffer.from(text), Buffer.alloc(bytes - text.length, ' ')]), {
    level: 1,
  });
const valid = '{"traces":[{"model":"m"}]}';
const large = spaces(valid, 16 * mib);
const sound = gzipSync(valid);

/** How a request may end, and how often that is tried one after the other. */
const endings: Readonly<Record<string, [status: number, times: number, body: () => Uint8Array]>> = {
  'a batch that is stored': [201, 4, () => large],
  'a small batch that is stored': [201, 200, () => sound],
  'a batch without a valid trace': [422, 100, () => gzipSync('{"traces":[{}]}')],
  'invalid JSON': [400, 4, () => spaces('{', 16 * mib)],
  'invalid gzip that announces 20 MiB': [400, 100, () => announcing(20 * mib, Buffer.alloc(64, 7))],
  'gzip that announces 4 GiB': [400, 100, () => announcing(0xffffffff, sound)],
  'truncated gzip': [400, 4, () => large.subarray(0, -9)],
  'a body that is too large': [413, 4, () => spaces(valid, 24 * mib)],
  'a body that is too large and announces 0 bytes': [
    413,
    4,
    () => Buffer.concat([spaces(valid, 24 * mib), gzipSync('')]),
  ],
};

describe('a packed request gives its share of the budget back after', () => {
  for (const [what, [status, times, body]] of Object.entries(endings)) {
    test(what, async () => {
      const bytes = body();
      for (let i = 0; i < times; i++) {
        const answer = await post(here(), bytes);
        assert.equal(answer.status, status, `request ${i}: ${answer.text.slice(0, 200)}`);
      }
      await assertBudgetWhole(here());
    });
  }
  test('another encoding, and a key that is unknown', async () => {
    for (let i = 0; i < 50; i++) {
      const other = await post(here(), large, '/traces/batch', { 'content-encoding': 'br' });
      assert.equal(other.status, 415);
    }
    assert.equal((await post({ ...here(), key: 'x' }, sound)).status, 401);
    await assertBudgetWhole(here());
  });
  test('all of these at once', async () => {
    const bodies = Object.values(endings).map(([status, , body]) => [status, body()] as const);
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const [status, bytes] = bodies[i % bodies.length] ?? assert.fail();
        const seen = await post(here(), bytes).then(
          (answer) => answer.status,
          (error: NodeJS.ErrnoException) => error.code,
        );
        // A refusal closes the connection, which may lose the reply if the body is still being sent.
        const allowed = [status, 503, 'ECONNRESET', 'EPIPE'];
        assert.ok(allowed.includes(seen ?? ''), `${seen} in place of ${status}`);
      }),
    );
    await assertBudgetWhole(here());
  });
});

describe('a caller who hangs up gives its share of the budget back', () => {
  /** Sends these bytes of an announced length, and hangs up after so many milliseconds. */
  function hangUp(place: Place, bytes: Buffer, length: number, afterMs: number): Promise<void> {
    const { hostname, port } = new URL(place.url);
    const lines = [`content-length: ${length}`, 'content-encoding: gzip'];
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(head(place, '/traces/batch', ...lines));
        socket.write(bytes, () => setTimeout(() => socket.destroy(), afterMs));
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve());
    });
  }

  test('in the middle of its body', async () => {
    const half = large.subarray(0, large.length / 2);
    for (let i = 0; i < 10; i++) await hangUp(here(), half, large.length, 5);
    await assertBudgetWhole(here());
  });
  test('while its body is being unpacked', async () => {
    const place = await http.startBrokenService({});
    try {
      for (const afterMs of [0, 2, 5, 10, 20, 40]) {
        await Promise.all([1, 2].map(() => hangUp(place, large, large.length, afterMs)));
        // A server that takes its share only after the hang-up has time to do so.
        await sleep(100);
      }
      await assertBudgetWhole(place);
    } finally {
      await place.stop();
    }
  });
  test('while its key is being looked up', async () => {
    const place = await http.startBrokenService((store) => ({
      findKeyByHash: async (hash) => {
        await sleep(80);
        return store.findKeyByHash(hash);
      },
    }));
    try {
      // The key is cached, so only the first of each round are looked up.
      for (let round = 0; round < 2; round++) {
        await Promise.all([1, 2, 3].map(() => hangUp(place, large, large.length, 20)));
        await sleep(limits.keyCacheTtlMs + 200);
      }
      await assertBudgetWhole(place);
    } finally {
      await place.stop();
    }
  });
});
