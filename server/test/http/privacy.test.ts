import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { generateKey } from '../../src/core/api-key.ts';
import { eventually } from '../support/eventually.ts';
import { scrape } from '../support/metrics.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

/** Letters only, so that it stays whole in JSON, in a URL and in a header. */
const canary = (name: string): string => `canary${name}zqxj`;
const anyCanary = /canary|zqxj/i;

let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService({ flags: { 'metrics-listen': '127.0.0.1:0' } });
  team = await service.keyFor(canary('Team'));
});
after(() => service.stop());

const goodTrace = {
  model: canary('Model'),
  input: canary('Input'),
  output: canary('Output'),
  error_message: canary('Error'),
  feature_name: canary('Feature'),
  user_identifier: canary('User'),
};
const goodText = JSON.stringify(goodTrace);

/** Everything a caller can fill with words, besides what a row itself sends. */
const talkative = {
  'x-request-id': canary('RequestId'),
  'request-id': canary('RequestId'),
  traceparent: canary('Parent'),
  'user-agent': canary('Agent'),
  referer: `http://${canary('Referer')}/`,
  cookie: canary('Cookie'),
  'x-forwarded-for': canary('Address'),
};

function post(body: string | Uint8Array, more: Partial<http.Sent> = {}): http.Sent {
  return { method: 'POST', path: '/traces', body, ...more };
}

function traceWith(changes: object): http.Sent {
  return post(JSON.stringify({ ...goodTrace, ...changes }));
}

function batch(traces: readonly unknown[]): http.Sent {
  return post(JSON.stringify({ traces }), { path: '/traces/batch' });
}

function ask(url: string, key: string, sent: http.Sent): Promise<Answer> {
  const headers = { ...http.bearer(key), ...http.jsonType, ...talkative, ...sent.headers };
  return http.send(url, { ...sent, headers });
}

const missing = '/traces/00000000-0000-7000-8000-000000000000';
const control = `${canary('Control')}\u0000`;
const oddQuery = `page=${canary('Page')}&limit=${canary('Limit')}&omit=${canary('Omit')}`;

const refusedRequests: Readonly<Record<string, [status: number, () => http.Sent]>> = {
  'JSON that breaks off in a prompt': [400, () => post(goodText.slice(0, 60))],
  'words in place of JSON': [400, () => post(canary('Words'))],
  'a prompt with a comma too many': [400, () => post(`{"input":"${canary('Input')}",}`)],
  'a prompt that is no UTF-8': [
    400,
    () =>
      post(Buffer.concat([Buffer.from(goodText.slice(0, -2)), Buffer.from([0xff, 0x22, 0x7d])])),
  ],
  'a field of the wrong type': [422, () => traceWith({ input: { text: canary('Nested') } })],
  'a list of prompts': [422, () => traceWith({ output: [canary('Listed')] })],
  'a label that is too long': [422, () => traceWith({ model: canary('Long').repeat(50) })],
  'a label with a control character': [422, () => traceWith({ user_identifier: control })],
  'a status that is none': [422, () => traceWith({ status: canary('Status') })],
  'a number written as text': [422, () => traceWith({ latency_ms: canary('Number') })],
  'a body that is only a text': [422, () => post(JSON.stringify(canary('Body')))],
  'a trace without a model': [422, () => post(`{"${canary('Field')}":"${canary('Value')}"}`)],
  'a batch without a valid trace': [
    422,
    () =>
      batch([{ input: canary('Item') }, canary('Text'), { model: 'm', status: canary('Status') }]),
  ],
  'a batch that is no list': [
    422,
    () => post(`{"traces":"${canary('Text')}"}`, { path: '/traces/batch' }),
  ],
  'a query of words behind a batch': [
    422,
    () => ({ ...batch([goodTrace]), path: `/traces/batch?omit=${canary('Omit')}` }),
  ],
  'a key of words for a retry': [
    422,
    () => post(goodText, { headers: { 'idempotency-key': `${canary('Once')} ${canary('Once')}` } }),
  ],
  'truncated gzip': [
    400,
    () =>
      post(gzipSync(goodText, { level: 0 }).subarray(0, -9), {
        headers: { 'content-encoding': 'gzip' },
      }),
  ],
  'JSON in gzip that breaks off': [
    400,
    () => post(gzipSync(goodText.slice(0, 60)), { headers: { 'content-encoding': 'gzip' } }),
  ],
  'a query of words': [422, () => ({ path: `/traces?${oddQuery}` })],
  'a parameter with a name of its own': [
    422,
    () => ({ path: `/traces?${canary('ParameterName')}=1` }),
  ],
  'a word in place of an id': [404, () => ({ path: `/traces/${canary('Id')}` })],
  'a query behind a missing id': [422, () => ({ path: `${missing}?q=${canary('Query')}` })],
  'an unknown path': [404, () => ({ path: `/${canary('Path')}?q=${canary('Query')}` })],
  'a path of broken percent codes': [404, () => ({ path: `/traces/%ZZ${canary('Path')}` })],
  'a wrong method': [405, () => ({ method: 'DELETE', path: `/traces/${canary('Id')}` })],
  'a type of its own': [
    415,
    () => post(goodText, { headers: { 'content-type': `text/${canary('Type')}` } }),
  ],
  'an encoding of its own': [
    415,
    () => post(goodText, { headers: { 'content-encoding': canary('Coding') } }),
  ],
  'a key of its own': [401, () => ({ path: '/traces', headers: http.bearer(canary('Key')) })],
  'a scheme of its own': [
    401,
    () => ({ path: '/traces', headers: { authorization: canary('Scheme') } }),
  ],
};

interface LogLine {
  level: string;
  msg: string;
  request_id?: string;
  status?: number;
}

function linesOf(log: string): LogLine[] {
  return log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** The line that says how a request ended. It is written after the answer, so it may come a moment later. */
function requestLine(log: () => string, id: string): Promise<LogLine> {
  const find = (): LogLine | undefined =>
    linesOf(log()).find(({ request_id, status }) => request_id === id && status !== undefined);
  return eventually('the log line of the request', 120_000, find, 10);
}

describe('an error reply repeats no input, and the log has its id and status', () => {
  for (const [what, [status, sent]] of Object.entries(refusedRequests)) {
    test(what, async () => {
      const answer = await ask(service.url, team.key, sent());
      assert.equal(answer.status, status, answer.text);
      assert.doesNotMatch(answer.text, anyCanary);
      assert.doesNotMatch(JSON.stringify([...answer.headers]), anyCanary);
      const line = await requestLine(service.log, answer.json.request_id);
      assert.equal(line?.status, status, `the log line of ${answer.json.request_id}`);
      assert.equal(line?.level, 'info');
    });
  }
});

describe('bytes that are not a request are refused the same way', () => {
  const bytes: Readonly<Record<string, [status: number, text: string]>> = {
    'words on the socket': [400, `${canary('Words')}\r\n\r\n`],
    'a header of words': [400, `GET / HTTP/1.1\r\nhost: x\r\n${canary('Header')}\r\n\r\n`],
    'a long header': [
      431,
      `GET / HTTP/1.1\r\nhost: x\r\nx: ${canary('Header').repeat(2000)}\r\n\r\n`,
    ],
  };
  for (const [what, [status, text]] of Object.entries(bytes)) {
    test(what, async () => {
      const answer = await http.sendBytes(service.url, text);
      assert.equal(answer.status, status);
      assert.doesNotMatch(answer.text, anyCanary);
      const line = await requestLine(service.log, answer.json.request_id);
      assert.equal(line?.status, status, `the log line of ${answer.json.request_id}`);
    });
  }
});

test('a successful request leaves none of its content in the log', async () => {
  const created = await ask(service.url, team.key, post(goodText));
  assert.equal(created.status, 201);
  assert.match(created.text, anyCanary, 'the trace itself comes back');
  const rejected = { model: 'm', status: canary('Status') };
  const some = await ask(service.url, team.key, {
    ...batch([goodTrace, rejected]),
    path: '/traces/batch?omit=input,output',
    headers: { 'idempotency-key': canary('Once') },
  });
  assert.deepEqual([some.status, some.json.rejected.length], [201, 1]);
  assert.doesNotMatch(JSON.stringify(some.json.rejected), anyCanary);
  const paths = ['/traces', '/traces?omit=input', `/traces/${created.json.id}`];
  const analytics = ['overview', 'by-model', 'by-feature', 'daily'].map((n) => `/analytics/${n}`);
  for (const path of [...paths, ...analytics, '/healthz', '/readyz', '/openapi.json']) {
    const answer = await ask(service.url, team.key, { path });
    assert.equal(answer.status, 200, path);
    const line = await requestLine(service.log, answer.headers.get('x-request-id') ?? '');
    assert.equal(line?.status, 200, path);
  }
});

test('the log holds no key: not a good one, a bad one, a first one or one in a query', async () => {
  const revoked = await service.keyFor(team.team);
  await service.beside.revokeKey(revoked.keyId, Date.now() * 1000);
  const keys = [team.key, revoked.key, generateKey(), service.firstKey ?? ''];
  for (const key of keys) {
    const answer = await ask(service.url, key, { path: `/traces?key=${key}` });
    assert.ok([422, 401].includes(answer.status));
    const lost = await http.send(service.url, { path: `/${key}?key=${key}` });
    assert.equal(lost.status, 404);
    assert.ok(await requestLine(service.log, lost.json.request_id));
    assert.ok(!answer.text.includes(key) && !lost.text.includes(key));
  }
  for (const key of keys) {
    assert.match(key, /^tt_\w{36}$/);
    assert.ok(!service.log().includes(key));
    assert.ok(!service.log().includes(key.slice('tt_'.length)));
  }
});

test('a store that breaks leaves its reason in the log and nothing of the trace anywhere', async () => {
  // As drivers do it: the sentence is general, and what was written hangs on the error.
  const breaks = (): Promise<never> =>
    Promise.reject(Object.assign(new Error('the store broke'), { detail: goodText, goodTrace }));
  const broken = await http.startBrokenService({ append: breaks, page: breaks, trace: breaks });
  try {
    const reads = [{ path: '/traces' }, { path: missing }];
    for (const sent of [post(goodText), ...reads]) {
      const answer = await ask(broken.url, broken.key, sent);
      http.assertProblem(answer, 'internal');
      assert.doesNotMatch(answer.text, anyCanary);
      assert.ok(!answer.text.includes('the store broke'), 'what operators need stays in the log');
      const id = answer.json.request_id;
      assert.equal((await requestLine(broken.log, id))?.status, 500);
      const told = linesOf(broken.log()).find(
        (line) => line.request_id === id && line.msg !== 'request',
      );
      assert.match(JSON.stringify(told), /the store broke/);
    }
    assert.doesNotMatch(broken.log(), anyCanary);
    assert.ok(!broken.log().includes(broken.key));
  } finally {
    await broken.stop();
  }
});

test('after all of this the log has a line for each request and no content of any', () => {
  const lines = linesOf(service.log()).filter(({ msg }) => msg === 'request');
  assert.ok(lines.length >= Object.keys(refusedRequests).length + 10, `${lines.length} lines`);
  assert.doesNotMatch(service.log(), anyCanary);
});

test('nor have the metrics, which count them all', async () => {
  const { text, series, value } = await scrape(service);
  const counts = series('tracetally_http_requests_total').map(value);
  const total = counts.reduce((sum, count) => sum + count, 0);
  assert.ok(total >= Object.keys(refusedRequests).length + 10, `${total} requests`);
  assert.doesNotMatch(text, anyCanary);
  assert.ok(!text.includes(team.keyId) && !text.includes('tt_'));
});
