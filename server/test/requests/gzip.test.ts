import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ErrorCode } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from '../http/helpers.ts';

let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService();
  team = await service.keyFor();
});
after(() => service.stop());

const single = JSON.stringify({ model: 'm', input: 'question '.repeat(50), cost_usd: 0.5 });
const batch = JSON.stringify({ traces: [{ model: 'a' }, { model: '' }, { model: 'b' }] });

function post(
  body: string | Uint8Array,
  path = '/traces',
  more: Partial<http.Sent> = {},
): Promise<Answer> {
  const headers = {
    ...http.bearer(team.key),
    ...http.jsonType,
    'content-encoding': 'gzip',
    ...more.headers,
  };
  return http.send(service.url, { method: 'POST', path, body, ...more, headers });
}

async function total(): Promise<number> {
  return (await service.call(team.key, 'GET', '/traces?limit=1')).json.total;
}

/** Without what is new in each. */
function withoutStamps(text: string): unknown {
  return JSON.parse(text, (name, value) => (['id', 'created_at'].includes(name) ? '' : value));
}

/** A valid trace or batch of just this many bytes, most of them spaces. */
function padded(text: string, bytes: number): Buffer {
  return Buffer.concat([Buffer.from(text), Buffer.alloc(bytes - text.length, ' ')]);
}

test('a packed trace or batch is stored as the plain one is', async () => {
  for (const [path, body, count] of [
    ['/traces', single, 1],
    ['/traces/batch', batch, 2],
    ['/traces/batch?omit=input', batch, 2],
  ] as const) {
    const before = await total();
    const plain = await service.call(team.key, 'POST', path, body);
    const packed = await post(gzipSync(body), path);
    assert.deepEqual([plain.status, packed.status], [201, 201], packed.text);
    assert.deepEqual(withoutStamps(packed.text), withoutStamps(plain.text));
    assert.equal(await total(), before + 2 * count);
  }
});

describe('gzip of every kind is taken', () => {
  const half = Math.floor(single.length / 2);
  const kinds: Readonly<Record<string, () => Uint8Array>> = {
    'not compressed at all': () => gzipSync(single, { level: 0 }),
    'the best compression': () => gzipSync(single, { level: 9 }),
    'two members, one after the other': () =>
      Buffer.concat([gzipSync(single.slice(0, half)), gzipSync(single.slice(half))]),
    'an empty member before the body': () => Buffer.concat([gzipSync(''), gzipSync(single)]),
    'a file name in the header': () => withFileName(gzipSync(single)),
  };
  for (const [what, pack] of Object.entries(kinds)) {
    test(what, async () => {
      const answer = await post(pack());
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.json.input, 'question '.repeat(50));
    });
  }
  for (const coding of ['GZIP', 'Gzip']) {
    test(`the coding written ${coding}`, async () => {
      const answer = await post(gzipSync(single), '/traces', {
        headers: { 'content-encoding': coding },
      });
      assert.equal(answer.status, 201, answer.text);
    });
  }
  test('in chunks, without a length', async () => {
    assert.equal((await post(gzipSync(single), '/traces', { isChunked: true })).status, 201);
    assert.equal((await post(gzipSync(batch), '/traces/batch', { isChunked: true })).status, 201);
  });
  test('and identity says that a body is plain', async () => {
    const headers = { 'content-encoding': 'identity' };
    assert.equal((await post(single, '/traces', { headers })).status, 201);
  });
});

/** Sets the flag for a name, and writes one behind the ten bytes of the header. */
function withFileName(packed: Buffer): Buffer {
  const head = Buffer.from(packed.subarray(0, 10));
  head[3] = 8;
  return Buffer.concat([head, Buffer.from('trace.json\0'), packed.subarray(10)]);
}

/** A copy with some bytes changed, counted from the end. */
function withTrailer(packed: Buffer, change: (trailer: Buffer) => void): Buffer {
  const copy = Buffer.from(packed);
  change(copy.subarray(-8));
  return copy;
}

describe('incomplete or invalid gzip is refused', () => {
  const packed = gzipSync(single);
  const bad: Readonly<Record<string, () => Uint8Array | string>> = {
    'plain JSON': () => single,
    'no bytes at all': () => '',
    'random bytes': () => Buffer.from('7f0e5d1c9a33b2c4d5e6f708', 'hex'),
    'two bytes': () => packed.subarray(0, 2),
    'the header alone': () => packed.subarray(0, 10),
    'a wrong method in the header': () => Buffer.concat([Buffer.from([0x1f, 0x8b, 7]), packed]),
    'garbage behind the header': () =>
      Buffer.concat([packed.subarray(0, 10), Buffer.alloc(40, 0xff)]),
    'without its trailer': () => packed.subarray(0, -8),
    'without its last byte': () => packed.subarray(0, -1),
    'a wrong checksum': () => withTrailer(packed, (end) => end.writeUInt32LE(1, 0)),
    'a wrong size': () => withTrailer(packed, (end) => end.writeUInt32LE(1, 4)),
    'a size of 4 GiB': () => withTrailer(packed, (end) => end.writeUInt32LE(0xffffffff, 4)),
    'a second member that breaks off': () => Buffer.concat([packed, packed.subarray(0, 12)]),
    'garbage behind the last member': () => Buffer.concat([packed, Buffer.from('garbage')]),
    'zlib without the header of gzip': () => deflateSync(single),
  };
  for (const [what, bytes] of Object.entries(bad)) {
    test(what, async () => {
      const before = await total();
      for (const path of ['/traces', '/traces/batch']) {
        http.assertProblem(await post(bytes(), path), 'malformed_encoding');
        http.assertProblem(await post(bytes(), path, { isChunked: true }), 'malformed_encoding');
      }
      assert.equal(await total(), before);
    });
  }
  test('cut off at any byte', async () => {
    const before = await total();
    for (let at = 1; at < packed.length; at++) {
      http.assertProblem(await post(packed.subarray(0, at)), 'malformed_encoding');
    }
    assert.equal(await total(), before);
  });
  test('a bit turned over at any byte never stores another text', async () => {
    const before = await total();
    let stored = 0;
    for (let at = 0; at < packed.length; at++) {
      const turned = Buffer.from(packed);
      turned[at] = (turned[at] ?? 0) ^ 0x10;
      const answer = await post(turned);
      assert.ok([201, 400].includes(answer.status), `${at}: ${answer.status} ${answer.text}`);
      if (answer.status === 400) continue;
      // Only what the header says of the time and the machine may change without harm.
      assert.ok(at < 10, `byte ${at}`);
      assert.equal(answer.json.input, 'question '.repeat(50));
      stored += 1;
    }
    assert.equal(await total(), before + stored);
  });
});

describe('what comes out is held to the rules of a plain body', () => {
  const inside: readonly [what: string, body: string | Uint8Array, code: ErrorCode][] = [
    ['nothing', '', 'malformed_json'],
    ['half a JSON text', '{"model":"m"', 'malformed_json'],
    ['gzip again', gzipSync(single), 'malformed_utf8'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'malformed_utf8'],
    ['a trace that is none', '{"model":7}', 'invalid_input'],
    ['a list', '[]', 'invalid_input'],
  ];
  for (const [what, body, code] of inside) {
    test(what, async () => {
      const before = await total();
      http.assertProblem(await post(gzipSync(body)), code);
      http.assertProblem(await post(gzipSync(body), '/traces', { isChunked: true }), code);
      assert.equal(await total(), before);
    });
  }
});

test('zstd is taken, and refused if it is incomplete, invalid or too large', async () => {
  const headers = { 'content-encoding': 'zstd' };
  for (const [path, body] of [
    ['/traces', single],
    ['/traces/batch', batch],
  ] as const) {
    const plain = await service.call(team.key, 'POST', path, body);
    const packed = await post(zstdCompressSync(body), path, { headers });
    assert.deepEqual([plain.status, packed.status], [201, 201], packed.text);
    assert.deepEqual(withoutStamps(packed.text), withoutStamps(plain.text));
  }
  const before = await total();
  const packed = zstdCompressSync(single);
  for (const bad of [packed.subarray(0, -1), packed.subarray(0, 9), gzipSync(single), '', single]) {
    http.assertProblem(await post(bad, '/traces', { headers }), 'malformed_encoding');
  }
  const large = zstdCompressSync(padded('{"model":"m"}', limits.bodyBytesMax + 1));
  http.assertProblem(await post(large, '/traces', { headers }), 'body_too_large');
  assert.equal(await total(), before);
});

test('other encodings are refused, whatever they hold', async () => {
  const before = await total();
  const rows: [coding: string, body: Uint8Array][] = [
    ['br', brotliCompressSync(single)],
    ['deflate', deflateSync(single)],
    ['x-zstd', zstdCompressSync(single)],
    ['compress', gzipSync(single)],
    ['x-gzip', gzipSync(single)],
    ['gzip, gzip', gzipSync(gzipSync(single))],
    ['gzip, identity', gzipSync(single)],
    ['gzip;q=1', gzipSync(single)],
    ['*', gzipSync(single)],
    ['gzip2', gzipSync(single)],
  ];
  for (const [coding, body] of rows) {
    for (const path of ['/traces', '/traces/batch']) {
      const headers = { 'content-encoding': coding };
      http.assertProblem(await post(body, path, { headers }), 'unsupported_media_type');
    }
  }
  assert.equal(await total(), before);
});

describe('the limit is that of the unpacked body, to the byte', () => {
  for (const [path, text, bytesMax] of [
    ['/traces', '{"model":"m"}', limits.bodyBytesMax],
    ['/traces/batch', '{"traces":[{"model":"m"}]}', limits.batchBodyBytesMax],
  ] as const) {
    test(path, async () => {
      const before = await total();
      const pack = (bytes: number): Buffer => gzipSync(padded(text, bytes), { level: 1 });
      assert.equal((await post(pack(bytesMax), path)).status, 201);
      http.assertProblem(await post(pack(bytesMax + 1), path), 'body_too_large');
      const inTwo = Buffer.concat([pack(bytesMax), gzipSync(' ')]);
      http.assertProblem(await post(inTwo, path), 'body_too_large');
      assert.equal(await total(), before + 1);
    });
  }
});

test('nothing of a packed body is in the log or in an error, however the request goes wrong', async () => {
  const word = 'canaryzqxj';
  const prompt = JSON.stringify({ model: 'm', input: word, output: [word] });
  const stored = gzipSync(prompt, { level: 0 });
  assert.ok(stored.includes(word), 'it is there to be read');
  const bodies: [status: number, body: Uint8Array, path?: string][] = [
    [422, stored],
    [422, gzipSync(JSON.stringify({ traces: [{ input: word }] })), '/traces/batch'],
    [400, gzipSync(prompt.slice(0, -4))],
    [400, gzipSync(`${word}${prompt}`)],
    [400, gzipSync(Buffer.concat([Buffer.from(prompt), Buffer.from([0xff])]))],
    [400, stored.subarray(0, -9)],
    [400, withTrailer(stored, (end) => end.writeUInt32LE(1, 0))],
    [413, gzipSync(padded(prompt, limits.bodyBytesMax + 1), { level: 1 })],
  ];
  for (const [status, body, path] of bodies) {
    const answer = await post(body, path);
    assert.equal(answer.status, status, answer.text);
    assert.ok(!`${answer.text}${JSON.stringify([...answer.headers])}`.includes(word));
  }
  const sound = gzipSync(JSON.stringify({ model: 'm', input: word }));
  assert.equal((await post(sound)).status, 201);
  assert.ok(!service.log().includes(word));
  assert.match(service.log(), /"status":413/);
});
