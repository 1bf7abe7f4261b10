import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { verifyTeam } from '../../src/tools/verify.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

export interface WireAnswer {
  status: number;
  /** Everything before the body, as it came. */
  head: string;
  headers: Headers;
  text: string;
}

/** For a machine that has much else to do. A connection that hangs would stay open forever. */
const closeMsMax = 60_000;

/** Bytes onto one connection, and everything that comes back until the server closes it, which it has to do in time. */
export function exchange(
  origin: string,
  bytes: string | Uint8Array,
  withinMs = closeMsMax,
): Promise<Buffer> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => {
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    });
    const late = setTimeout(() => {
      const said = Buffer.concat(pieces).toString('latin1').slice(0, 200);
      socket.destroy();
      reject(new Error(`the connection was still open after ${withinMs} ms; it said: ${said}`));
    }, withinMs);
    // A server that closes while bytes are on their way resets; what it said before still counts.
    socket.on('error', () => {});
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.on('close', () => {
      clearTimeout(late);
      resolve(Buffer.concat(pieces));
    });
  });
}

/** All answers on one connection, in order. */
export async function exchangeAnswers(
  origin: string,
  bytes: string | Uint8Array,
  withinMs?: number,
): Promise<WireAnswer[]> {
  return parseAnswers(await exchange(origin, bytes, withinMs));
}

function parseAnswers(bytes: Buffer): WireAnswer[] {
  const answers: WireAnswer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const bodyAt = bytes.indexOf('\r\n\r\n', at) + 4;
    assert.ok(bodyAt > 4, `no end of headers: ${bytes.toString('latin1', at, at + 200)}`);
    const head = bytes.toString('latin1', at, bodyAt);
    const [statusLine = '', ...lines] = head.trimEnd().split('\r\n');
    assert.match(statusLine, /^HTTP\/1\.1 \d{3} /);
    const headers = new Headers(
      lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]),
    );
    const body =
      headers.get('transfer-encoding') === 'chunked'
        ? readChunks(bytes, bodyAt)
        : readLength(bytes, bodyAt, Number(headers.get('content-length')));
    answers.push({ status: Number(statusLine.split(' ')[1]), head, headers, text: body.text });
    at = body.endAt;
  }
  return answers;
}

interface Body {
  text: string;
  endAt: number;
}

function readLength(bytes: Buffer, at: number, length: number): Body {
  assert.ok(at + length <= bytes.length, 'an answer broke off');
  return { text: bytes.toString('utf8', at, at + length), endAt: at + length };
}

function readChunks(bytes: Buffer, start: number): Body {
  const pieces: Buffer[] = [];
  for (let at = start; at < bytes.length;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const length = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const dataAt = lineEnd + 2;
    at = dataAt + length + 2;
    if (length === 0) return { text: Buffer.concat(pieces).toString('utf8'), endAt: at };
    pieces.push(bytes.subarray(dataAt, dataAt + length));
  }
  return assert.fail('an answer in chunks broke off');
}

export interface Written {
  method?: string;
  path: string;
  key?: string | null;
  headers?: readonly string[];
  body?: string;
  /** The last request on a connection says so, and the server closes it. */
  isLast?: boolean;
}

/** One request as text, for requests that follow each other on one connection. */
export function writeRequest({
  method = 'GET',
  path,
  key = null,
  headers = [],
  body,
  isLast,
}: Written) {
  const lines = [`${method} ${path} HTTP/1.1`, 'host: tracetally.test', ...headers];
  if (key !== null) lines.push(`authorization: Bearer ${key}`);
  if (body !== undefined) lines.push('content-type: application/json');
  if (body !== undefined) lines.push(`content-length: ${Buffer.byteLength(body)}`);
  if (isLast) lines.push('connection: close');
  // `exchange` writes a character a byte.
  return `${lines.join('\r\n')}\r\n\r\n${Buffer.from(body ?? '').toString('latin1')}`;
}

export async function totalOf(service: TestService, { key }: KeyHolder): Promise<number> {
  const { status, json } = await service.call(key, 'GET', '/traces?limit=1');
  assert.equal(status, 200);
  return json.total;
}

/** The service still reads and writes, and what it wrote is all that was added. */
export async function assertServes(service: TestService, holder: KeyHolder): Promise<void> {
  const before = await totalOf(service, holder);
  const created = await service.call(holder.key, 'POST', '/traces', { model: 'still-here' });
  assert.equal(created.status, 201, created.text);
  assert.equal(await totalOf(service, holder), before + 1);
  assert.equal((await service.call(null, 'GET', '/readyz')).status, 200);
}

/** The rollups of these teams match their traces, and the storage is sound. */
export async function assertVerified(
  { beside }: TestService,
  expected: readonly (readonly [holder: KeyHolder, traces: number])[],
): Promise<void> {
  for (const [{ teamId, team }, traces] of expected) {
    assert.deepEqual(await verifyTeam(beside, teamId), { traces, differences: [] }, team);
  }
  assert.deepEqual(await beside.checkStorage(), []);
}

/** Fails if the work takes too long. */
export async function within<T>(ms: number, what: string, work: () => Promise<T>): Promise<T> {
  const startMs = performance.now();
  const result = await work();
  const tookMs = Math.round(performance.now() - startMs);
  assert.ok(tookMs < ms, `${what} took ${tookMs} ms`);
  return result;
}
