import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { Failure } from '../../src/errors.ts';
import type { DecodeJob, DecodedReply } from '../../src/http/decoding/decode-job.ts';
import { partsOf, readPart } from '../../src/http/decoding/decoded-parts.ts';
import { openDecodingPool } from '../../src/http/decoding/decoding-pool.ts';
import type { DecodingOptions, DecodingPool } from '../../src/http/decoding/decoding-pool.ts';
import { threadThat } from '../support/bad-thread.ts';
import type { BadThread } from '../support/bad-thread.ts';

function jobOf(teamId: string, body: unknown = { traces: [{ model: 'm' }] }): DecodeJob {
  return {
    kind: 'batch',
    encoding: 'json',
    coding: 'identity',
    bytes: new Uint8Array(Buffer.from(JSON.stringify(body))),
    bodyBytesMax: 1_000_000,
    traceBytesMax: 1_000_000,
    teamId,
    nowUs: Date.now() * 1000,
    basePath: '',
    omit: [],
    hashPrefix: null,
    prices: null,
  };
}

function decode(pool: DecodingPool, job: DecodeJob): Promise<DecodedReply> {
  return pool.decode(job.teamId, () => job);
}

const codeOf = (error: unknown): string => (error instanceof Failure ? error.code : String(error));

/** Runs with a pool whose threads misbehave with every body that does not belong to the team "good". */
async function withBadThreads(
  does: BadThread,
  options: DecodingOptions,
  run: (pool: ReturnType<typeof openDecodingPool>) => Promise<void>,
): Promise<void> {
  const pool = openDecodingPool({ module: threadThat(does), threadsMax: 2, ...options });
  try {
    await run(pool);
  } finally {
    await pool.close();
  }
}

const cases: readonly [BadThread, DecodingOptions, string][] = [
  ['loops', { cpuMsMax: 200, wallMsMax: 120_000 }, 'body_too_complex'],
  // Long enough for a thread to start on a busy machine.
  ['is silent', { cpuMsMax: 120_000, wallMsMax: 5_000 }, 'queue_full'],
  ['runs out of memory', { cpuMsMax: 120_000, wallMsMax: 120_000 }, 'body_too_complex'],
  ['exits', {}, 'internal'],
  ['throws', {}, 'internal'],
];

for (const [does, options, code] of cases) {
  test(`a decoding thread that ${does} costs only its own request`, async () => {
    await withBadThreads(does, options, async (pool) => {
      const bad = assert.rejects(decode(pool, jobOf('bad')), (error) => codeOf(error) === code);
      const beside = Array.from({ length: 3 }, () => decode(pool, jobOf('good')));
      assert.deepEqual(
        (await Promise.all(beside)).map(({ kind }) => kind),
        ['decoded', 'decoded', 'decoded'],
      );
      await bad;
      // The thread is replaced.
      assert.equal((await decode(pool, jobOf('good'))).kind, 'decoded');
      await assert.rejects(decode(pool, jobOf('bad')), (error) => codeOf(error) === code);
      assert.equal((await decode(pool, jobOf('good'))).kind, 'decoded');
    });
  });
}

test('one team never uses all threads', async () => {
  await withBadThreads('loops', { cpuMsMax: 120_000, wallMsMax: 120_000 }, async (pool) => {
    const ended: string[] = [];
    const note = (name: string) => () => void ended.push(name);
    const bad = Array.from({ length: 3 }, () => decode(pool, jobOf('bad')).catch(note('bad')));
    await decode(pool, jobOf('good')).then(note('good'));
    assert.deepEqual(ended, ['good']);
    await pool.close();
    await Promise.all(bad);
  });
});

test('a body of a caller that has hung up is not decoded', async () => {
  const pool = openDecodingPool({ module: threadThat('loops') });
  await assert.rejects(
    pool.decode('bad', () => null),
    Failure,
  );
  await pool.close();
});

test('a pool with a busy thread can be closed', async () => {
  const pool = openDecodingPool({ module: threadThat('loops') });
  const bad = assert.rejects(decode(pool, jobOf('bad')), Failure);
  await decode(pool, jobOf('good'));
  await pool.close();
  await bad;
  await assert.rejects(decode(pool, jobOf('good')), Failure);
});

test('the real thread decodes, and reports what is wrong with a body', async () => {
  const pool = openDecodingPool();
  const traces = [{ model: 'm', input: 'Grüße', metadata: { a: 'b' } }, { model: 1 }];
  const { parts, rejected } = await decode(pool, jobOf('t', { traces }));
  assert.deepEqual(JSON.parse(rejected), [
    { index: 1, errors: [{ field: 'model', message: 'must be a string' }] },
  ]);
  const [part] = parts;
  assert.ok(part);
  const { drafts } = readPart(part);
  assert.equal(drafts[0]?.model, 'm');
  assert.equal(drafts[0]?.input, null);
  const shown = Buffer.from(part.shown?.bytes ?? new ArrayBuffer(0)).toString();
  assert.match(shown, /"input":"Grüße".*"metadata":\{"a":"b"\}/);
  await assert.rejects(decode(pool, jobOf('t', { traces: [] })), (error) => {
    assert.deepEqual((error as Failure).details.errors, [
      { field: 'traces', message: 'must not be empty' },
    ]);
    return codeOf(error) === 'invalid_input';
  });
  await pool.close();
});

test('a thread has the own prices even if the body that they came with was not valid', async () => {
  const pool = openDecodingPool({ threadsMax: 1 });
  const rates = { input: 2_000_000, output: 0, cacheRead: null, cacheWrite: null, reasoning: null };
  const place = { no: 7, teamId: null, model: 'my-model', fromDay: 0 };
  const prices = { no: 7, entries: [{ ...place, rates, setAtUs: 0, setBy: 'operator' }] };
  const job = { ...jobOf('t', { traces: [] }), prices };
  await assert.rejects(decode(pool, job), (error) => codeOf(error) === 'invalid_input');
  const traces = [{ model: 'my-model', prompt_tokens: 500_000, completion_tokens: 0 }];
  const { parts } = await decode(pool, { ...jobOf('t', { traces }), prices });
  assert.equal(parts[0] && readPart(parts[0]).drafts[0]?.cost_usd, 1);
  await pool.close();
});

test('a call with many reports fills a part as many calls would', () => {
  const ids = { span: null, outerSpan: null, response: null, emitter: 'e', isError: false };
  const drafts = Array.from({ length: 100 }, () => draftTrace({ model: 'm' }));
  const calls = drafts.map(() => Array.from({ length: 50 }, () => ids));
  const parts = partsOf(drafts, calls, null);
  assert.ok(parts.length >= 9, `${parts.length} parts`);
  assert.equal(
    parts.reduce((sum, { rows }) => sum + rows, 0),
    100,
  );
});

test('traces that take more memory than may wait for the store are refused before all of them are packed', () => {
  const label = '\u4e00'.repeat(255);
  const drafts = Array.from({ length: 50_000 }, () =>
    draftTrace({ model: label, feature_name: label, user_identifier: label }),
  );
  assert.throws(
    () => partsOf(drafts, null, null),
    (error) => codeOf(error) === 'body_too_large',
  );
});
