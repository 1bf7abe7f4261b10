import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { generateKey, hashKey } from '../../src/core/api-key.ts';
import { startServer, toolInFolder } from '../cli/helpers.ts';
import type { NewKeyJson, Tool } from '../cli/helpers.ts';
import { jsonType, send } from '../http/helpers.ts';
import { eventually } from '../support/eventually.ts';
import type { Answer } from '../support/service.ts';
import type { ServerProcess } from '../support/cli.ts';
import { exchange } from './helpers.ts';

/** A separate server process, so that every file and every line of output is the real one. */
let tool: Tool;
let server: ServerProcess;
const keys: Record<string, string> = {};
const answers: string[] = [];

const cleanups: (() => void | Promise<void>)[] = [];
const cleaner = { after: (clean: () => void | Promise<void>) => void cleanups.unshift(clean) };
after(async () => {
  for (const clean of cleanups) await clean();
});

before(async () => {
  tool = toolInFolder(cleaner);
  const make = async (...args: string[]): Promise<NewKeyJson> =>
    tool.json<NewKeyJson>('keys', 'create', '--team', 'team', ...args);
  const [valid, rotated, revoked] = [await make(), await make(), await make()];
  const expired = await make('--expires', '1s');
  server = await startServer(cleaner, tool, ['--log-level', 'debug']);
  const renewed = await tool.json<NewKeyJson>('keys', 'rotate', rotated.key_id, '--overlap', '0s');
  assert.equal((await tool.run('keys', 'revoke', revoked.key_id)).code, 0);
  const expiresMs = Date.parse(expired.expires ?? '');
  await eventually('the end of the key that expires', 120_000, () => Date.now() > expiresMs);
  for (const [name, { key }] of Object.entries({ valid, rotated, revoked, expired, renewed })) {
    keys[name] = key;
  }
  keys['unknown'] = generateKey();
  keys['mistyped'] = `${valid.key.slice(0, -1)}${valid.key.endsWith('0') ? '1' : '0'}`;
});

/** Every file of the store: the database, its log, its index and its lock. */
function filesOfStore(): Map<string, Buffer> {
  const folder = dirname(tool.path);
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** The ways in which a secret could be written down. */
function formsOf(secret: string): (string | Buffer)[] {
  const inBasic = [`user:${secret}`, `${secret}:`, secret].map((text) =>
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
  );
  const behindPrefix = secret.slice('tt_'.length + 6);
  const otherwise = [Buffer.from(secret, 'utf16le'), Buffer.from(secret).toString('hex')];
  return [secret, behindPrefix, ...inBasic, ...otherwise];
}

function remember(answer: Answer): Answer {
  answers.push(`${JSON.stringify([...answer.headers])} ${answer.text}`);
  return answer;
}

async function ask(sent: Parameters<typeof send>[1]): Promise<Answer> {
  return remember(await send(server.url, sent));
}

/** One key in all the places where people put keys. */
async function useEverywhere(key: string): Promise<number> {
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
  const right = await ask({ path: '/traces', headers: { authorization: `Bearer ${key}` } });
  for (const authorization of [basic(`user:${key}`), basic(`${key}:`), key, `Token ${key}`]) {
    assert.notEqual((await ask({ path: '/traces', headers: { authorization } })).status, 200);
  }
  for (const path of [`/traces?key=${key}`, `/traces/${key}`, `/${key}`, `/traces?page=${key}`]) {
    await ask({ path });
    await ask({ path, headers: { authorization: `Bearer ${key}` } });
  }
  const headers = { cookie: `key=${key}`, 'x-api-key': key, 'x-request-id': key, referer: key };
  await ask({ path: '/traces', headers });
  const body = JSON.stringify({ model: 'm', api_key: key, key, __key: { key } });
  const authorization = `Bearer ${key}`;
  await ask({ method: 'POST', path: '/traces', headers: { ...jsonType, authorization }, body });
  await ask({
    method: 'POST',
    path: '/traces',
    headers: { ...jsonType, authorization },
    body: key,
  });
  const broken = `GET /${key} HTTP/1.1\r\nhost: x\r\nauthorization ${key}\r\n\r\n`;
  answers.push((await exchange(server.url, broken)).toString('latin1'));
  return right.status;
}

const marker = 'marker-that-is-stored';

test('a key is nowhere on disk, in the output or in a reply, however and wherever it was used', async () => {
  const statuses: Record<string, number> = {};
  for (const [name, key] of Object.entries(keys)) statuses[name] = await useEverywhere(key);
  const good = ['valid', 'renewed'].map((name) => statuses[name]);
  assert.deepEqual(good, [200, 200]);
  const bad = ['rotated', 'revoked', 'expired', 'unknown', 'mistyped'].map((n) => statuses[n]);
  assert.ok(
    bad.every((status) => status === 401 || status === 429),
    String(bad),
  );
  const body = JSON.stringify({ model: marker });
  const headers = { ...jsonType, authorization: `Bearer ${keys['valid']}` };
  assert.equal((await ask({ method: 'POST', path: '/traces', headers, body })).status, 201);

  const files = filesOfStore();
  const names = ['', '-wal', '-shm', '.lock'].map((end) => `tracetally.db${end}`);
  assert.deepEqual(
    names.filter((name) => !files.has(name)),
    [],
    'these files were looked at',
  );
  const all = Buffer.concat([...files.values()]);
  assert.ok(all.includes(marker), 'what is stored is found in this way');
  assert.ok(all.includes(hashKey(keys['valid'] ?? '')), 'and so is the hash');
  assertNowhere(files);
});

function assertNowhere(files: Map<string, Buffer>): void {
  const places = new Map<string, Buffer>([
    ...files,
    ['stdout', Buffer.from(server.stdout())],
    ['stderr', Buffer.from(server.stderr())],
    ['replies', Buffer.from(answers.join('\n'))],
  ]);
  assert.ok(Object.keys(keys).length === 7);
  for (const [name, key] of Object.entries(keys)) {
    assert.match(key, /^tt_\w{36}$/);
    for (const form of formsOf(key)) {
      for (const [place, bytes] of places) {
        assert.ok(!bytes.includes(form), `the ${name} key is in ${place}`);
      }
    }
  }
}

const canary = (name: string): string => `canary${name}zqxj`;
const anyCanary = /canary|zqxj/i;
const prompt = JSON.stringify({ model: 'm', input: canary('Input'), output: canary('Output') });

function head(...lines: string[]): string {
  const all = ['POST /traces HTTP/1.1', 'host: x', `authorization: Bearer ${keys['valid']}`];
  return `${[...all, 'content-type: application/json', ...lines].join('\r\n')}\r\n\r\n`;
}

/** Sends half of a prompt and hangs up. */
function breakOff(bytes: string): Promise<void> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(bytes, () => setTimeout(() => socket.destroy(), 50)),
    );
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
}

test('a prompt is neither in the log at debug nor in an error reply, however its request goes wrong', async () => {
  const listed = JSON.stringify({ model: 'm', input: [canary('Listed')] });
  const authorization = `Bearer ${keys['valid']}`;
  const headers = { ...jsonType, authorization };
  const post = { method: 'POST', path: '/traces', headers };
  const tooLarge = JSON.stringify({ model: 'm', input: canary('Large').repeat(500_000) });
  const refused: [status: number, sent: Parameters<typeof send>[1]][] = [
    [413, { ...post, body: tooLarge, isChunked: true }],
    [422, { ...post, body: listed }],
    [400, { ...post, body: prompt.slice(0, -3) }],
    [400, { ...post, body: `${prompt}${prompt}` }],
    [400, { ...post, body: `{"input":${canary('Bare')}}` }],
    [415, { ...post, body: gzipSync(prompt), headers: { ...headers, 'content-encoding': 'br' } }],
    [404, { ...post, path: `/${canary('Path')}`, body: prompt }],
    [405, { ...post, method: 'PUT', body: prompt }],
  ];
  for (const [status, sent] of refused) {
    const answer = await send(server.url, sent).catch(() => null);
    // A body that is too large may be cut off before the answer is read.
    if (answer === null && status === 413) continue;
    assert.equal(answer?.status, status);
    assert.doesNotMatch(`${answer.text} ${JSON.stringify([...answer.headers])}`, anyCanary);
  }
  const raw = [
    `${head('content-length: -1')}${prompt}`,
    `${head('content-length: 9', 'transfer-encoding: chunked')}${prompt}`,
    `${head(`content-length: ${prompt.length}`, 'connection: keep-alive')}${prompt}${canary('Next')}\r\n\r\n`,
    `${canary('Start')} ${prompt}\r\n\r\n`,
    head(`x-prompt: ${canary('Header').repeat(2_000)}`),
  ];
  for (const bytes of raw) {
    const said = (await exchange(server.url, bytes)).toString('latin1');
    const refusals = said.split('HTTP/1.1 ').filter((one) => /^4\d\d/.test(one));
    for (const one of refusals) assert.doesNotMatch(one, anyCanary);
  }
  await breakOff(`${head('content-length: 5000')}${prompt}`);
  await breakOff(`${head('transfer-encoding: chunked')}fff\r\n${prompt}`);
  assert.equal((await send(server.url, { ...post, body: prompt })).status, 201);

  const readLines = () => server.stderr().split('\n').slice(0, -1);
  const missing = () => {
    const logged = new Set(readLines().map((line) => JSON.parse(line).status));
    return [201, 400, 404, 405, 415, 422, 431].filter((status) => !logged.has(status));
  };
  await eventually(
    () => `log lines of ${missing().join()}`,
    120_000,
    () => missing().length === 0,
  );
  const lines = readLines();
  assert.ok(lines.some((line) => line.includes('"level":"debug"')));
  assert.doesNotMatch(`${server.stderr()}${server.stdout()}`, anyCanary);
});

test('after the server has stopped no key is left anywhere either', async () => {
  assert.equal(await server.end('SIGTERM'), 0, server.stderr().slice(-500));
  const report = await tool.run('verify');
  assert.equal(report.code, 0, report.stdout);
  const files = filesOfStore();
  assert.ok(Buffer.concat([...files.values()]).includes(marker));
  assertNowhere(files);
  assert.doesNotMatch(`${server.stderr()}${server.stdout()}`, anyCanary);
});
