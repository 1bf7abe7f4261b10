import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { setStage } from '../guarantees/crash-lab.ts';
import {
  bytes,
  chatAttributes,
  encode,
  message,
  otlpAttributes,
  spanOf,
  spansRequest,
  text,
} from '../support/otlp.ts';

const mib = 1024 * 1024;
const clients = 12;
/** As for other bodies: what the budget admits, a few times over for what is under way and for garbage. */
const grownMbMax = (5 * limits.bodiesBytesMax) / 1e6;

interface Bomb {
  path?: string;
  type: string;
  body: () => Buffer;
}

const protobuf = 'application/x-protobuf';
const json = 'application/json';

/** A request with one span that has these fields. */
const inSpan = (fields: readonly Buffer[]): Buffer =>
  message(1, [message(2, [message(2, fields)])]);
const attribute = (name: string, value: Buffer): Buffer =>
  message(9, [text(1, name), bytes(2, value)]);
/** The attributes of a call, so that the others are read. */
const callAttributes = otlpAttributes(chatAttributes()).map(({ key, value }) =>
  attribute(key, 'stringValue' in value ? text(1, value.stringValue) : Buffer.from([0x18, 1])),
);

function repeated(count: number, part: Buffer): Buffer {
  return Buffer.alloc(count * part.length, part);
}

/** A list in a list, and so on, built from the inside. */
function nested(depth: number): Buffer {
  let value = text(1, 'x');
  for (let i = 0; i < depth; i++) value = bytes(5, bytes(1, value));
  return value;
}

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

const bombs: Readonly<Record<string, Bomb>> = {
  '100 MB of zeros': { type: protobuf, body: () => Buffer.alloc(100 * mib) },
  '19 MB of empty spans': {
    type: protobuf,
    body: () => inScope(Buffer.alloc(19 * mib, Buffer.from([0x12, 0]))),
  },
  '5 million empty scopes': {
    type: protobuf,
    body: () => repeated(4_900_000, bytes(1, bytes(2, Buffer.alloc(0)))),
  },
  '40,000 empty spans': {
    type: protobuf,
    body: () => inScope(Buffer.alloc(80_000, Buffer.from([0x12, 0]))),
  },
  'a million attributes': {
    type: protobuf,
    body: () => inSpan([...callAttributes, repeated(1_000_000, attribute('a', text(1, 'x')))]),
  },
  '500,000 messages': {
    type: protobuf,
    body: () => {
      const one = attribute('gen_ai.prompt.7.content', text(1, 'x'));
      return inSpan([...callAttributes, repeated(500_000, one)]);
    },
  },
  'a list of 5 million values': {
    type: protobuf,
    body: () =>
      inSpan([
        ...callAttributes,
        attribute(
          'gen_ai.input.messages',
          bytes(5, Buffer.alloc(10_000_000, Buffer.from([0x0a, 0]))),
        ),
      ]),
  },
  'lists 3,000 deep': {
    type: protobuf,
    body: () => inSpan([...callAttributes, attribute('gen_ai.input.messages', nested(3_000))]),
  },
  '5 million events': {
    type: protobuf,
    body: () => inSpan([...callAttributes, Buffer.alloc(10_000_000, Buffer.from([0x5a, 0]))]),
  },
  'lists 100,000 deep as JSON': {
    type: json,
    body: () =>
      Buffer.from(
        `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}]}]}]}`,
      ),
  },
  'a million attributes as JSON': {
    type: json,
    body: () =>
      Buffer.from(
        `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[${'{"key":"a"},'.repeat(1_000_000)}{}]}]}]}]}`,
      ),
  },
  '19 MB of spaces as JSON': { type: json, body: () => Buffer.alloc(19 * mib, ' ') },
  '19 MB of lines': {
    path: '/ingest/litellm',
    type: json,
    body: () => Buffer.alloc(19 * mib, '{}\n'),
  },
};

function inScope(spans: Buffer): Buffer {
  return bytes(1, bytes(2, spans));
}

test(`${clients} concurrent clients with each of these bodies, packed as gzip, do not exhaust the memory`, async (t) => {
  const { server, key, tearDown } = await setStage();
  const agent = new Agent({ keepAlive: true });
  const post = (path: string, type: string, body: Buffer): Promise<number> =>
    postPacked(`${server.url}${path}`, key, type, body, agent);
  const good = gzipSync(encode('protobuf', spansRequest([spanOf()])));
  try {
    assert.equal(await post('/v1/traces', protobuf, good), 200);
    const before = peakBytes(server.child.pid);
    for (const [what, { path = '/v1/traces', type, body }] of Object.entries(bombs)) {
      const packed = gzipSync(body());
      const startMs = performance.now();
      const statuses = await Promise.all(times(clients, () => post(path, type, packed)));
      const grownMb = (peakBytes(server.child.pid) - before) / 1e6;
      const seen = [...new Set(statuses)].join();
      t.diagnostic(
        `${what}: ${packed.length} bytes packed, ${seen}; memory grew by ${Math.round(grownMb)} MB; ${Math.round(performance.now() - startMs)} ms`,
      );
      assert.ok(
        statuses.every((status) => [200, 400, 413, 503].includes(status)),
        `${what}: ${seen}`,
      );
      assert.ok(grownMb < grownMbMax, `${what}: memory grew by ${Math.round(grownMb)} MB`);
      assert.equal(await post('/v1/traces', protobuf, good), 200, 'it still serves');
    }
  } finally {
    agent.destroy();
    await tearDown();
  }
});

/** The most that was ever resident. */
function peakBytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

function postPacked(
  url: string,
  key: string,
  type: string,
  body: Buffer,
  agent: Agent,
): Promise<number> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': type,
    'content-encoding': 'gzip',
    'content-length': body.length,
  };
  return new Promise((resolve, reject) => {
    request(url, { agent, method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    })
      // A server that refuses the body closes the connection instead of reading the rest of it.
      .on('error', (error: NodeJS.ErrnoException) =>
        ['EPIPE', 'ECONNRESET'].includes(error.code ?? '') ? resolve(503) : reject(error),
      )
      .end(body);
  });
}
