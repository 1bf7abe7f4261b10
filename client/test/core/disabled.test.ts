import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TraceTally, TraceTallyError } from '../../src/index.ts';
import { startFakeOpenAI } from '../support/fake-openai.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { runProgram } from '../support/run-program.ts';

const program = fileURLToPath(new URL('programs/use-everything.ts', import.meta.url));
const nothing = { queued: 0, sent: 0, dropped: 0, rejected: 0, failed: 0, retries: 0 };
const noOps = {
  completion: 'Hello there.',
  failure: 'BadRequestError',
  anthropic: 'message',
  generated: 'text',
  isSameStream: true,
  measured: 'measured',
  recorded: null,
  stats: nothing,
};

let fake: FakeProvider;
let requests = 0;
/** Counts the requests that reach a TraceTally server. */
const tallyServer = createServer((_request, response) => {
  requests += 1;
  response.writeHead(500).end();
});
let tallyUrl: string;

before(async () => {
  fake = await startFakeOpenAI();
  tallyServer.listen(0, '127.0.0.1');
  await once(tallyServer, 'listening');
  tallyUrl = `http://127.0.0.1:${(tallyServer.address() as AddressInfo).port}`;
});
after(async () => {
  tallyServer.closeAllConnections();
  tallyServer.close();
  await fake.stop();
});

test('without an API key the app runs as usual, one warning says what to set, and nothing is sent', async () => {
  const { code, stdout, stderr } = await runProgram(program, [fake.url], {
    TRACETALLY_URL: tallyUrl,
  });
  assert.equal(code, 0, stderr);
  const { codes, ...rest } = JSON.parse(stdout) as { codes: string[] };
  assert.deepEqual(rest, noOps);
  assert.deepEqual(codes, ['no_api_key', 'no_api_key', 'no_api_key']);
  assert.equal(stderr.trim().split('\n').length, 1, stderr);
  assert.match(stderr, /^TraceTally: .*not recorded.*TRACETALLY_API_KEY.*"apiKey"/);
  assert.equal(requests, 0);
});

test('TRACETALLY_ENABLED=false records nothing, without a warning', async () => {
  for (const env of [{}, { TRACETALLY_API_KEY: 'k' }]) {
    const { code, stdout, stderr } = await runProgram(program, [fake.url], {
      TRACETALLY_URL: 'http://127.0.0.1:9',
      TRACETALLY_ENABLED: 'false',
      ...env,
    });
    assert.deepEqual([code, stderr], [0, '']);
    const { codes: _, ...rest } = JSON.parse(stdout) as { codes: string[] };
    assert.deepEqual(rest, noOps);
  }
});

test('enabled: false records nothing, and reads still work', async () => {
  const errors: Error[] = [];
  const options = { apiKey: 'k', baseUrl: tallyUrl, enabled: false, maxRetries: 0 };
  const client = new TraceTally({ ...options, onError: (error) => void errors.push(error) });
  const openai = { chat: { completions: { create: () => 'answer' } } };
  assert.equal(client.wrapOpenAI(openai).chat.completions.create(), 'answer');
  client.enqueue({ model: 'm' });
  assert.equal(await client.record({ model: 'm' }), null);
  await client.close();
  assert.deepEqual([client.stats(), errors, requests], [nothing, [], 0]);
  await assert.rejects(client.analytics.overview(), /http_500/);
  assert.equal(requests, 1);
});

test('a read without an API key says which variable to set', async () => {
  const client = new TraceTally({ apiKey: '', onError() {} });
  await assert.rejects(client.traces.get('id'), (error) => {
    assert.ok(error instanceof TraceTallyError);
    assert.match(error.message, /needs an API key.*TRACETALLY_API_KEY/);
    return true;
  });
});

test('onError receives the warning about a missing API key once per hook', () => {
  const codes: string[] = [];
  const onError = (error: Error): void => void codes.push((error as TraceTallyError).code);
  for (let at = 0; at < 3; at++) new TraceTally({ apiKey: '', onError });
  assert.deepEqual(codes, ['no_api_key']);
});
