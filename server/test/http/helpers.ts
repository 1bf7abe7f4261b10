import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { readDatabase } from '../../src/config.ts';
import { openClock } from '../../src/core/clock.ts';
import { errorTable } from '../../src/errors.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { buildApp } from '../../src/http/app.ts';
import { openBodyBudget } from '../../src/http/body-budget.ts';
import type { DecodingOptions } from '../../src/http/decoding/decoding-pool.ts';
import type { BodyBudget } from '../../src/http/body-budget.ts';
import { openReplyBudget } from '../../src/http/reply-budget.ts';
import type { ReplyBudget } from '../../src/http/reply-budget.ts';
import { Admission } from '../../src/ingest/admission.ts';
import { openPricing } from '../../src/ingest/pricing.ts';
import { WaitingBudget } from '../../src/ingest/waiting-budget.ts';
import type { WaitingBounds } from '../../src/ingest/waiting-budget.ts';
import { limits } from '../../src/limits.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/service.ts';
import type { Answer } from '../support/service.ts';
import { databaseIn } from '../support/store-place.ts';

export interface Sent {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** Sends the body in chunks, without a content-length. */
  isChunked?: boolean;
}

/** One request exactly as written: no header is added for it, no path is tidied up. */
export function send(origin: string, sent: Sent): Promise<Answer> {
  const { method = 'GET', path, headers = {}, body, isChunked = false } = sent;
  const length = Buffer.byteLength(body ?? '');
  const framing: Record<string, string> = isChunked
    ? { 'transfer-encoding': 'chunked' }
    : body === undefined
      ? {}
      : { 'content-length': String(length) };
  return new Promise((resolve, reject) => {
    const outgoing = request(new URL(origin).origin, {
      method,
      path,
      agent: false,
      headers: { ...framing, ...headers },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on('error', reject);
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('end', () => {
        const names = Object.entries(incoming.headersDistinct);
        const answered = names.flatMap(([name, values = []]) => values.map((v) => [name, v]));
        const text = Buffer.concat(pieces).toString();
        resolve(answerOf(incoming.statusCode ?? 0, answered as [string, string][], text));
      });
    });
    outgoing.end(body);
  });
}

/** Bytes onto a socket, and what comes back until the server closes it. Bytes that are no HTTP go this way. */
export function sendBytes(origin: string, bytes: string): Promise<Answer> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes, 'latin1'));
    // A server that closes while bytes are on their way resets; what it said before still counts.
    socket.on('error', (error) => (pieces.length === 0 ? reject(error) : undefined));
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.on('close', () => {
      const [head = '', text = ''] = Buffer.concat(pieces).toString().split('\r\n\r\n', 2);
      const [statusLine = '', ...lines] = head.split('\r\n');
      const pairs = lines.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]);
      resolve(answerOf(Number(statusLine.split(' ')[1]), pairs, text));
    });
  });
}

function answerOf(status: number, pairs: [string, string][], text: string): Answer {
  const headers = new Headers(pairs);
  const isJson = headers.get('content-type')?.includes('json') ?? false;
  return { status, headers, text, json: isJson && text !== '' ? JSON.parse(text) : null };
}

export const jsonType: Readonly<Record<string, string>> = { 'content-type': 'application/json' };

export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

let addresses = 0;

/** Headers that come from an address of their own, for services that trust 127.0.0.1 as a proxy. */
export function fromFreshAddress(): Record<string, string> {
  const count = ++addresses;
  return { 'x-forwarded-for': `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}` };
}

const problemFields = ['type', 'title', 'status', 'detail', 'code', 'request_id'];

/** Everything that is true of every problem document and of the headers that go with its status. */
export function assertProblem(answer: Answer, code: ErrorCode): void {
  const { status, title } = errorTable[code];
  assert.equal(answer.status, status, `expected ${code}, got ${answer.status} ${answer.text}`);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json(;|$)/);
  const problem = answer.json;
  const fields = code === 'invalid_input' ? [...problemFields, 'errors'] : problemFields;
  assert.deepEqual(Object.keys(problem).sort(), [...fields].sort());
  assert.equal(problem.code, code);
  assert.equal(problem.status, status);
  assert.equal(problem.title, title);
  assert.equal(problem.type, `urn:tracetally:error:${code}`);
  assert.match(problem.detail, /^[A-Z].+\.$/);
  assert.match(problem.request_id, /^[0-9a-f]{12}-[0-9a-z]+$/);
  assert.equal(answer.headers.get('x-request-id'), problem.request_id);

  assert.equal(answer.headers.get('www-authenticate'), status === 401 ? 'Bearer' : null);
  assert.equal(answer.headers.has('allow'), status === 405);
  const retryAfter = answer.headers.get('retry-after');
  if (status === 429 || status === 503) assert.match(retryAfter ?? '', /^[1-9][0-9]?$/);
  else assert.equal(retryAfter, null);
}

/** The one field error of a 422. */
export function assertFieldError(answer: Answer, field: string, message?: string): string {
  assertProblem(answer, 'invalid_input');
  assert.equal(answer.json.errors.length, 1, answer.text);
  const [error] = answer.json.errors;
  assert.deepEqual(Object.keys(error), ['field', 'message']);
  assert.equal(error.field, field);
  assert.match(error.message, /^(must|is) /);
  if (message !== undefined) assert.equal(error.message, message);
  return error.message;
}

/** The text without its request id, the only part that may differ between two error replies. */
export function withoutRequestId({ text, json }: Answer): string {
  return text.replace(json.request_id, '');
}

export interface BrokenService {
  url: string;
  key: string;
  bodyBudget: BodyBudget;
  replyBudget: ReplyBudget;
  log(): string;
  stop(): Promise<void>;
}

/** The real app on a real store, some of whose methods are replaced by failing ones. */
export async function startBrokenService(
  faults: Partial<Store> | ((sound: Store) => Partial<Store>),
  bounds: WaitingBounds = limits,
  decoding: DecodingOptions = {},
): Promise<BrokenService> {
  const folder = temporaryFolder();
  const clock = { kind: 'system' } as const;
  const database = readDatabase({ database: await databaseIn(folder.path) }, {});
  const sound = await openStore(database, { clock, role: 'server' });
  const store = { ...sound, ...(typeof faults === 'function' ? faults(sound) : faults) };
  const nowUs = Date.now() * 1000;
  const { key, record } = makeKey({ name: null, scope: 'full', nowUs, expiresAtUs: null });
  const { team } = await sound.ensureTeam('broken', nowUs);
  await sound.createKey(team.id, record);
  const lines: string[] = [];
  const bodyBudget = openBodyBudget(limits.bodiesBytesMax);
  const replyBudget = openReplyBudget(limits.repliesBytesMax);
  const app = await buildApp({
    reader: store,
    keys: store,
    signIns: store,
    probe: store,
    writes: new Admission(store, new WaitingBudget(bounds)),
    pricing: openPricing(store, openClock(clock)),
    priceMissingCosts: false,
    bodyBudget,
    replyBudget,
    decoding,
    clock: openClock(clock),
    logger: pino({ level: 'debug' }, { write: (line) => void lines.push(line) }),
    version: '0.0.0',
    envKey: null,
    basePath: '',
    page: null,
    bodyBytesMax: limits.bodyBytesMax,
    trustProxy: false,
    keyRequestsPerMinuteMax: null,
    authFailuresPerMinuteMax: limits.authFailuresPerMinuteMax,
    isStopping: () => false,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    key,
    bodyBudget,
    replyBudget,
    log: () => lines.join(''),
    async stop() {
      await app.close();
      await sound.close();
      folder.remove();
    },
  };
}
