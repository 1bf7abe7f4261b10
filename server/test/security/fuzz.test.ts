import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postTrace, startServer, toolInFolder, totalOf } from '../cli/helpers.ts';
import type { NewKeyJson } from '../cli/helpers.ts';
import { chooseSeed, pick, seededRandom } from '../support/seeded-random.ts';
import { writeRequest } from './helpers.ts';

const bytesToSend = 1_000_000;
const connectionsAtOnce = 30;
/** Long enough for a server on a busy machine. */
const answerMsMax = 1_500;
const seed = chooseSeed();

/** Requests in order that may store nothing: they are what most of the fuzz is made from. */
function seeds(readKey: string): string[] {
  const body = JSON.stringify({ model: 'fuzz', input: 'é😀'.repeat(20), cost_usd: 0.5 });
  const write = { method: 'POST', path: '/traces', body };
  return [
    writeRequest({ ...write, key: readKey }),
    writeRequest({ ...write, key: 'tt_unknown' }),
    writeRequest({
      ...write,
      path: '/traces/batch?omit=input',
      body: `{"traces":[${body},${body}]}`,
      key: readKey,
      headers: ['idempotency-key: fuzz', 'content-encoding: gzip'],
    }),
    writeRequest({ path: '/traces?page=1&limit=5&omit=input', key: readKey }),
    writeRequest({ path: '/traces/01a1dd3e-281e-7000-815c-7f9185ec75bf', key: readKey }),
    writeRequest({ path: '/analytics/daily', key: readKey, headers: ['x-forwarded-for: ::1'] }),
    `POST /traces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"mod\r\n0\r\n\r\n`,
    'OPTIONS * HTTP/1.0\r\nconnection: keep-alive, upgrade\r\nupgrade: websocket\r\n\r\n',
  ];
}

const tokens = [
  '\r\n',
  '\n',
  '\0',
  ':',
  ' ',
  '%',
  '\xff',
  '0',
  '-',
  '\r\n\r\n',
  'chunked',
  '{',
  '"',
];

function fuzzBytes(random: () => number, requests: readonly string[]): Buffer {
  const length = 200 + Math.floor(random() * 3000);
  if (random() < 0.3) return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
  let text = '';
  while (text.length < length) text += pick(random, requests);
  const changes = Math.floor(random() * 12);
  for (let i = 0; i < changes; i++) {
    const at = Math.floor(random() * text.length);
    const cut = random() < 0.5 ? 1 : Math.floor(random() * 40);
    const put = random() < 0.3 ? '' : pick(random, tokens).repeat(1 + Math.floor(random() * 3));
    text = `${text.slice(0, at)}${put}${text.slice(at + cut)}`;
  }
  return Buffer.from(text, 'latin1');
}

/** Sends, and hangs up at the first answer, or immediately if it is not patient. */
function throwAt(url: string, bytes: Buffer, isPatient: boolean): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let answered = 0;
    const socket = connect(Number(port), hostname, () => {
      socket.write(bytes, () => setTimeout(() => socket.destroy(), isPatient ? answerMsMax : 0));
    });
    socket.on('data', (data: Buffer) => {
      answered += data.length;
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answered));
  });
}

test('a million fuzzed bytes at the socket store no trace and do not stop the server', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const tool = toolInFolder(t);
  const [full, read] = [
    await tool.json<NewKeyJson>('keys', 'create', '--team', 'fuzz'),
    await tool.json<NewKeyJson>('keys', 'create', '--team', 'fuzz', '--scope', 'read'),
  ];
  const server = await startServer(t, tool);
  assert.equal((await postTrace(server.url, full.key)).status, 201);

  const random = seededRandom(seed);
  const requests = seeds(read.key);
  let [sent, connections, answered] = [0, 0, 0];
  const client = async (): Promise<void> => {
    while (sent < bytesToSend && server.child.exitCode === null) {
      const bytes = fuzzBytes(random, requests);
      sent += bytes.length;
      connections += 1;
      const isAnswered = (await throwAt(server.url, bytes, random() < 0.5)) > 0;
      if (isAnswered) answered += 1;
    }
  };
  await Promise.all(Array.from({ length: connectionsAtOnce }, client));
  t.diagnostic(`${sent} bytes over ${connections} connections, of which ${answered} were answered`);
  assert.ok(sent >= bytesToSend && connections > 300 && answered > 20);

  // Time for a late failure, which must not come.
  await sleep(100);
  assert.equal(server.child.exitCode, null, `it ended: ${server.stderr()} (seed ${seed})`);
  assert.equal(await totalOf(server.url, full.key), 1, `something was stored (seed ${seed})`);
  assert.equal((await postTrace(server.url, full.key)).status, 201);
  const lines = server.stderr().trim().split('\n').filter(Boolean);
  const bad = lines.filter((line) => !/^\{"level":"(debug|info)"/.test(line));
  const first = bad[0]?.slice(0, 400);
  assert.equal(
    bad.length,
    0,
    `log lines about a bug of the server, such as ${first} (seed ${seed})`,
  );
  assert.equal(await server.end('SIGTERM'), 0, 'it stops as always');
  const report = await tool.run('verify');
  assert.equal(report.code, 0, report.stdout);
});
