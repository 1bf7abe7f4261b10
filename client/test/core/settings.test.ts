import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { inspect } from 'node:util';
import { TraceTally } from '../../src/index.ts';
import type { TraceTallyOptions } from '../../src/index.ts';
import { readSettings } from '../../src/settings.ts';

const names = ['TRACETALLY_API_KEY', 'TRACETALLY_URL', 'TRACETALLY_ENABLED'];
const before = names.map((name) => process.env[name]);

beforeEach(() => {
  for (const name of names) delete process.env[name];
});
afterEach(() => {
  for (const [at, name] of names.entries()) {
    if (before[at] === undefined) delete process.env[name];
    else process.env[name] = before[at];
  }
});

test('a missing or empty API key is not an error', () => {
  assert.equal(readSettings().apiKey, null);
  process.env.TRACETALLY_API_KEY = '';
  assert.equal(readSettings().apiKey, null);
});

test('TRACETALLY_ENABLED is true or false, and the option takes precedence', () => {
  assert.equal(readSettings().enabled, true);
  for (const [text, enabled] of [
    ['', true],
    ['true', true],
    ['1', true],
    ['FALSE', false],
    ['0', false],
  ] as const) {
    process.env.TRACETALLY_ENABLED = text;
    assert.equal(readSettings().enabled, enabled, text);
  }
  assert.equal(readSettings({ enabled: true }).enabled, true);
  process.env.TRACETALLY_ENABLED = 'perhaps';
  assert.throws(() => readSettings(), /TRACETALLY_ENABLED must be true or false/);
});

test('an invalid sampleRate is an error that names the option', () => {
  for (const sampleRate of [-0.1, 1.1, Number.NaN, '0.5', {}]) {
    const options = { apiKey: 'k', sampleRate } as TraceTallyOptions;
    assert.throws(() => new TraceTally(options), /"sampleRate" must be a number from 0 to 1/);
  }
});

test('options take precedence over the environment, and the environment over the defaults', () => {
  process.env.TRACETALLY_API_KEY = 'key-of-the-environment';
  assert.equal(readSettings().apiKey, 'key-of-the-environment');
  assert.equal(readSettings().baseUrl, 'http://127.0.0.1:4000');
  process.env.TRACETALLY_URL = 'https://traces.example/v1/';
  assert.equal(readSettings().baseUrl, 'https://traces.example/v1');
  const given = readSettings({ apiKey: 'key-given', baseUrl: 'http://localhost:1//' });
  assert.equal(given.apiKey, 'key-given');
  assert.equal(given.baseUrl, 'http://localhost:1');
});

test('settings are frozen', () => {
  const settings = readSettings({ apiKey: 'k' });
  assert.ok(Object.isFrozen(settings));
});

test('an invalid URL is an error at construction that does not quote the URL', () => {
  for (const baseUrl of ['', 'localhost:4000', '127.0.0.1', 'ftp://x', 'http://', 'no url']) {
    assert.throws(() => new TraceTally({ apiKey: 'k', baseUrl }), /"baseUrl"/, baseUrl);
  }
  for (const baseUrl of ['http://u:secret@x', 'http://x/?a=secret', 'http://x/#secret']) {
    assert.throws(
      () => new TraceTally({ apiKey: 'k', baseUrl }),
      (error: Error) => error.message.includes('"baseUrl"') && !error.message.includes('secret'),
      baseUrl,
    );
  }
  process.env.TRACETALLY_URL = 'nonsense';
  assert.throws(() => new TraceTally({ apiKey: 'k' }), /environment variable TRACETALLY_URL/);
});

test('an API key with invalid characters is an error at construction that does not quote the key', () => {
  for (const apiKey of ['tt_secret\n', 'tt secret', 'tt_sécret']) {
    assert.throws(
      () => new TraceTally({ apiKey }),
      (error: Error) => error.message.includes('"apiKey"') && !/s.cret/.test(error.message),
    );
  }
});

test('an invalid number is an error that names the option and its bounds', () => {
  const wrong: TraceTallyOptions[] = [
    { maxBatchTraces: 0 },
    { maxBatchTraces: 1_001 },
    { maxBatchBytes: -1 },
    { flushIntervalMs: Number.NaN },
    { maxQueueTraces: 1.5 },
    { maxRetries: -1 },
    { maxRetryAgeMs: 86_400_000 },
    { requestTimeoutMs: Number.POSITIVE_INFINITY },
    { closeTimeoutMs: '10' as unknown as number },
  ];
  for (const options of wrong) {
    const name = Object.keys(options)[0] ?? '';
    const expected = new RegExp(`"${name}" must be a whole number from \\d+ to \\d+`);
    assert.throws(() => new TraceTally({ apiKey: 'k', ...options }), expected);
  }
});

test('an unknown option is an error', () => {
  const options = { apikey: 'k', apiKey: 'k' } as TraceTallyOptions;
  assert.throws(() => new TraceTally(options), /Unknown TraceTally option "apikey".*apiKey/);
});

test('an option of the wrong type is an error that names the option', () => {
  const wrong = {
    onError: 'log',
    fetch: {},
    gzip: 'yes',
    mask: /secret/,
    captureText: 0,
    enabled: 'false',
  };
  for (const [name, value] of Object.entries(wrong)) {
    const options = { apiKey: 'k', [name]: value } as TraceTallyOptions;
    assert.throws(() => new TraceTally(options), new RegExp(`"${name}" must be`));
  }
});

test('printing a client does not show its API key', () => {
  const client = new TraceTally({ apiKey: 'tt_very_secret' });
  const shown = inspect(client, { depth: 10, showHidden: true }) + JSON.stringify(client);
  assert.ok(!shown.includes('tt_very_secret'));
});
