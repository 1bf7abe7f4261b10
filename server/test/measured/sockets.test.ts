import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';
import {
  assertVerified,
  assertServes,
  exchange,
  exchangeAnswers,
  totalOf,
} from '../security/helpers.ts';
import { writeRequest } from '../security/helpers.ts';
import type { WireAnswer } from '../security/helpers.ts';

let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService({ flags: { 'log-level': 'silent' } });
  team = await service.keyFor();
});
after(() => service.stop());

const small = '{"model":"m"}';

/** The head of a request that is in order but for these lines. */
function head(startLine: string, ...lines: string[]): string {
  const key = `authorization: Bearer ${team.key}`;
  const all = [startLine, 'host: x', key, 'content-type: application/json', ...lines];
  return `${all.join('\r\n')}\r\n\r\n`;
}

const get = 'GET /traces HTTP/1.1';
const post = 'POST /traces HTTP/1.1';
const close = 'connection: close';

/** A whole valid request, hidden in something else. If it is ever carried out, its model shows. */
function smuggled(): string {
  return writeRequest({ method: 'POST', path: '/traces', key: team.key, body: '{"model":"evil"}' });
}

async function evilStored(): Promise<number> {
  const { json } = await service.call(team.key, 'GET', '/analytics/by-model');
  const records = json as { model: string; call_count: number }[];
  return records.find(({ model }) => model === 'evil')?.call_count ?? 0;
}

/** What was stored is what was acknowledged on the wire, and never what was hidden. */
async function assertCounted(send: () => Promise<WireAnswer[]>): Promise<WireAnswer[]> {
  const [before, evilBefore] = [await totalOf(service, team), await evilStored()];
  const answers = await send();
  assert.equal(await evilStored(), evilBefore, 'a hidden request was carried out');
  const acknowledged = answers.filter(({ status }) => status === 201).length;
  assert.equal(await totalOf(service, team), before + acknowledged, 'stored and acknowledged');
  return answers;
}

/** Refused with one answer of this status, after which the connection is closed. */
async function assertRefused(bytes: string, status: number): Promise<void> {
  const answers = await assertCounted(() => exchangeAnswers(service.url, bytes));
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [status],
  );
  assert.match(answers[0]?.headers.get('content-type') ?? '', /^application\/problem\+json/);
}

type Rows = Readonly<Record<string, () => string>>;

const chunked = 'transfer-encoding: chunked';
const chunks = `d\r\n${small}\r\n0\r\n\r\n`;
const withChunks = (text: string) => () => `${head(post, chunked, close)}${text}`;

/** Requests of which two servers could think differently. */
const ambiguous: Rows = {
  'a length and chunks (CL.TE)': () =>
    `${head(post, 'content-length: 5', chunked)}0\r\n\r\n${smuggled()}`,
  'chunks and a length (TE.CL)': () =>
    `${head(post, chunked, 'content-length: 4')}${smuggled().length.toString(16)}\r\n${smuggled()}\r\n0\r\n\r\n`,
  'chunks twice over': () => `${head(post, chunked, 'transfer-encoding: identity')}${chunks}`,
  'chunks that are not the last coding': () =>
    `${head(post, 'transfer-encoding: chunked, identity')}${chunks}`,
  'two lengths that differ': () =>
    `${head(post, 'content-length: 13', 'content-length: 200')}${small}${smuggled()}`,
  'two lengths that agree': () =>
    `${head(post, 'content-length: 13', 'content-length: 13')}${small}${smuggled()}`,
  'a length of two numbers': () => `${head(post, 'content-length: 13, 13')}${small}${smuggled()}`,
  ...Object.fromEntries(
    ['-1', '-13', '+13', '0x0d', '1e1', '13.0', '', '13 13', '13\u000b', '9'.repeat(40)].map(
      (length) => [
        `the length ${JSON.stringify(length).slice(0, 20)}`,
        () => `${head(post, `content-length: ${length}`)}${small}${smuggled()}`,
      ],
    ),
  ),
  ...Object.fromEntries(
    ['xchunked', '\u000bchunked', '"chunked"', 'chunked\u0000', 'chunked, chunked', ''].map(
      (coding) => [
        `the transfer coding ${JSON.stringify(coding)}`,
        () =>
          `${head(post, `transfer-encoding: ${coding}`, 'content-length: 13')}${chunks}${smuggled()}`,
      ],
    ),
  ),
  'a space before the colon': () => `${head(post, 'transfer-encoding : chunked')}${chunks}`,
  'a folded header': () => head(get, 'x: a', ' b', close),
  'a folded transfer coding': () => `${head(post, 'transfer-encoding:', ' chunked')}${chunks}`,
  'a line that ends with LF alone': () => head(get, 'x: a\nconnection: close'),
  'a CR inside a header': () => head(get, `x: a\r${chunked}`),
  'LF in place of all line ends': () => head(get, close).replaceAll('\r\n', '\n'),
  'chunks of no size': withChunks('\r\n\r\n'),
  'chunks of a negative size': withChunks(`-d\r\n${small}\r\n0\r\n\r\n`),
  'a chunk size past 64 bits': withChunks(`ffffffffffffffffd\r\n${small}\r\n0\r\n\r\n`),
  'a chunk size with 0x': withChunks(`0xd\r\n${small}\r\n0\r\n\r\n`),
  'a chunk size with a space': withChunks(`d \r\n${small}\r\n0\r\n\r\n`),
  'a chunk size that ends with LF': withChunks(`d\n${small}\r\n0\r\n\r\n`),
  'a chunk extension that ends with LF': withChunks(`d;\n${small}\r\n0\r\n\r\n`),
  'a chunk that is longer than it says': withChunks(`c\r\n${small}\r\n0\r\n\r\n`),
  'garbage between chunks': withChunks(`5\r\n{"mod\r\nxx8\r\nel":"m"}\r\n0\r\n\r\n`),
  'NUL in the request line': () => head('GET /tra\u0000ces HTTP/1.1', close),
  'NUL in a header': () => head(get, 'x: a\u0000b', close),
  'NUL in a header name': () => head(get, 'x\u0000y: a', close),
  'the preface of HTTP/2': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u0000\u0000\u0000\u0004',
  'a TLS handshake': () => '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  'bytes past ASCII in the path': () => head('GET /traces/\xff\xfe HTTP/1.1', close),
  'no host': () => head(get, close).replace('host: x\r\n', ''),
  'two hosts': () => head(get, 'host: y', close),
  'chunks in HTTP/1.0 over a connection that is kept': () =>
    `${head('POST /traces HTTP/1.0', chunked, 'connection: keep-alive')}${chunks}`,
};

describe('a request that two servers could parse differently is refused, and its connection is closed', () => {
  for (const [what, bytes] of Object.entries(ambiguous)) {
    test(what, () => assertRefused(bytes(), 400));
  }
});

/** Each is answered before its body was looked at; the body must not become the next request. */
const unread: Readonly<Record<string, [status: number, () => string]>> = {
  'a body for GET': [200, () => 'GET /traces?limit=1 HTTP/1.1'],
  'a body for an unknown path': [404, () => 'POST /nowhere HTTP/1.1'],
  'a body for a wrong method': [405, () => 'DELETE /traces HTTP/1.1'],
  'a body for a path that cannot be decoded': [404, () => 'POST /%zz HTTP/1.1'],
  'a body for a probe': [200, () => 'GET /healthz HTTP/1.1'],
  'a body that is no JSON': [400, () => post],
};

describe('a request inside a body is never executed', () => {
  for (const [what, [status, startLine]] of Object.entries(unread)) {
    for (const form of ['with a length', 'in chunks'] as const) {
      test(`${what}, ${form}`, async () => {
        const hidden = smuggled();
        const size = form === 'in chunks' ? chunked : `content-length: ${hidden.length}`;
        const body =
          form === 'in chunks' ? `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n` : hidden;
        const last = writeRequest({ path: '/healthz', isLast: true });
        const bytes = `${head(startLine(), size)}${body}${last}`;
        const answers = await assertCounted(() => exchangeAnswers(service.url, bytes));
        assert.equal(answers[0]?.status, status);
        const later = answers.slice(1).map((answer) => answer.text);
        assert.ok(later.length <= 1 && later.every((text) => text === '{"status":"ok"}'));
      });
    }
  }
  test('a body without a key, of a wrong type, or with an expectation', async () => {
    const size = `content-length: ${smuggled().length}`;
    const heads = [
      `POST /traces HTTP/1.1\r\nhost: x\r\n${size}\r\n\r\n`,
      head(post, 'content-type: text/plain', size).replace(/content-type: app.+\r\n/, ''),
      head(post, 'expect: 100-continue', size),
      head(post, 'expect: something', size),
      head(post, 'upgrade: h2c', 'connection: upgrade', size),
    ];
    for (const one of heads) {
      const bytes = `${one}${smuggled()}${writeRequest({ path: '/healthz', isLast: true })}`;
      const answers = await assertCounted(async () => {
        const all = (await exchange(service.url, bytes)).toString('latin1');
        return [...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([text, status]) => {
          return { status: Number(status), head: text, headers: new Headers(), text: '' };
        });
      });
      assert.ok(answers.length >= 1);
    }
  });
  test('trailers after the chunks have no effect', async () => {
    const other = await service.keyFor();
    const trailers = `authorization: Bearer ${other.key}\r\ncontent-length: 9\r\nx: y\r\n\r\n`;
    const bytes = `${head(post, chunked, close)}d\r\n${small}\r\n0\r\n${trailers}`;
    const [answer] = await assertCounted(() => exchangeAnswers(service.url, bytes));
    assert.ok([201, 400].includes(answer?.status ?? 0));
    assert.equal(await totalOf(service, other), 0);
  });
});

describe('a flood of headers is cut off', () => {
  const floods: Rows = {
    'one header of 1 MB': () => head(get, `x: ${'x'.repeat(2 ** 20)}`),
    '100,000 headers': () => head(get, ...Array.from({ length: 100_000 }, (_, i) => `x${i}: y`)),
    '4,000 empty headers': () => head(get, ...Array.from({ length: 4_000 }, () => 'a:')),
    'a path of 1 MB': () => head(`GET /${'x'.repeat(2 ** 20)} HTTP/1.1`),
    'a query of 1 MB': () => head(`GET /traces?${'x&'.repeat(2 ** 19)} HTTP/1.1`),
    'trailers of 1 MB': () =>
      `${head(post, chunked)}d\r\n${small}\r\n0\r\nx: ${'y'.repeat(2 ** 20)}\r\n\r\n`,
  };
  for (const [what, bytes] of Object.entries(floods)) {
    test(what, () => assertRefused(bytes(), 431));
  }
  test('endless chunk extensions', () =>
    assertRefused(`${head(post, chunked)}d;${'x'.repeat(2 ** 20)}\r\n${small}\r\n`, 413));

  test('a hundred headers are accepted', async () => {
    const many = Array.from({ length: 100 }, (_, i) => `x-header-${i}: some value ${i}`);
    const [answer] = await exchangeAnswers(service.url, head(get, ...many, close));
    assert.equal(answer?.status, 200);
  });
  for (const [what, piece] of [
    ['a header that never ends', 'x'.repeat(1024)],
    ['headers that never end', 'x: y\r\n'.repeat(170)],
  ] as const) {
    test(`${what} is cut off soon after the limit`, async () => {
      const sent = await sendUntilClosed(`${get}\r\nhost: x\r\nx: `, piece);
      assert.ok(sent < 4 * limits.headerBytesMax, `${sent} bytes`);
    });
  }
});

/** Writes one piece after the other until the server has had enough. */
function sendUntilClosed(start: string, piece: string): Promise<number> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    let sent = 0;
    let timer: NodeJS.Timeout | undefined;
    const socket = connect(Number(port), hostname, () => {
      socket.write(start);
      timer = setInterval(() => {
        if (sent > 2 ** 20) socket.destroy(new Error('a megabyte was taken'));
        else socket.write(piece, () => (sent += piece.length));
      }, 2);
    });
    socket.on('data', (data: Buffer) => assert.match(data.toString(), /^HTTP\/1\.1 431 /));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => {
      clearInterval(timer);
      resolve(sent);
    });
  });
}

describe('odd targets and versions', () => {
  const odd: Readonly<Record<string, [statuses: number[], () => string]>> = {
    'HTTP/0.9': [[400, 401], () => 'GET /traces\r\n\r\n'],
    'HTTP/9.9': [[400, 505], () => head('GET /traces HTTP/9.9', close)],
    'an absolute target of another host': [
      [200],
      () => head('GET http://evil.example/traces HTTP/1.1', close),
    ],
    'an absolute target with a wrong method': [
      [405],
      () => head('DELETE http://evil.example/traces HTTP/1.1', close),
    ],
    'a target with two slashes': [[404], () => head('GET //evil.example/traces HTTP/1.1', close)],
    'a file': [[400, 404], () => head('GET file:///etc/passwd HTTP/1.1', close)],
    'a way up': [[404], () => head('GET /traces/../../etc/passwd HTTP/1.1', close)],
    'an encoded way up': [[404], () => head('GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1', close)],
    'a star': [[404, 405], () => head('OPTIONS * HTTP/1.1', close)],
    'a broken percent code': [[404], () => head('GET /traces/%f HTTP/1.1', close)],
    'invalid UTF-8 in the path': [[404], () => head('GET /traces/%ff%fe HTTP/1.1', close)],
    'NUL in the path': [[404], () => head('GET /traces/%00 HTTP/1.1', close)],
    'invalid UTF-8 in a query': [[422], () => head('GET /traces?page=%ff HTTP/1.1', close)],
    'bytes past ASCII in a header': [[200], () => head(get, 'x-note: \xff\xfe', close)],
    'bytes past ASCII behind the key': [
      [401],
      () => head(get, close).replace(/(Bearer \S+)/, '$1\xff'),
    ],
    'invalid UTF-8 in the body': [
      [400],
      () => `${head(post, 'content-length: 11', close)}{"model":"\xff`,
    ],
    'invalid UTF-8 in an unknown field': [
      [400],
      () => `${head(post, 'content-length: 21', close)}{"model":"m","\xc3\x28":1 }`,
    ],
    'NUL between the tokens': [
      [400],
      () => `${head(post, 'content-length: 14', close)}{"model":\u0000"m"}`,
    ],
    'UTF-16': [
      [400],
      () =>
        `${head(post, 'content-length: 26', close)}${Buffer.from(small, 'utf16le').toString('latin1')}`,
    ],
  };
  for (const [what, [statuses, bytes]] of Object.entries(odd)) {
    test(`${what}: ${statuses.join(' or ')}`, async () => {
      const answers = await assertCounted(() => exchangeAnswers(service.url, bytes()));
      assert.equal(answers.length, 1);
      assert.ok(statuses.includes(answers[0]?.status ?? 0), `${answers[0]?.status}`);
      assert.doesNotMatch(answers[0]?.head ?? '', /evil/);
    });
  }
  test('no tunnel is opened', async () => {
    const tunnel = writeRequest({ method: 'CONNECT', path: '127.0.0.1:22', key: team.key });
    const said = (await exchange(service.url, `${tunnel}${smuggled()}`)).toString('latin1');
    assert.doesNotMatch(said, /^HTTP\/1\.1 2/);
    await assertCounted(async () => []);
  });
});

test('the check for hidden requests notices one that is executed', async () => {
  const bytes = `${smuggled()}${writeRequest({ path: '/healthz', isLast: true })}`;
  await assert.rejects(assertCounted(() => exchangeAnswers(service.url, bytes)));
});

test('after all of this the service serves, and verify finds no difference', async () => {
  await assertServes(service, team);
  await assertVerified(service, [[team, await totalOf(service, team)]]);
});
