import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../../src/errors.ts';
import type { DecodeJob } from '../../src/http/decoding/decode-job.ts';
import { readPart } from '../../src/http/decoding/decoded-parts.ts';
import { openDecodingPool } from '../../src/http/decoding/decoding-pool.ts';
import type { DecodingOptions } from '../../src/http/decoding/decoding-pool.ts';
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

const codeOf = (error: unknown): string => (error instanceof Failure ? error.code : String(error));

/** Runs with a pool whose threads misbehave with every body except those of the team "good". */
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
  ['is silent', { cpuMsMax: 120_000, wallMsMax: 5_000 }, 'body_too_complex'],
  ['runs out of memory', { cpuMsMax: 120_000, wallMsMax: 120_000 }, 'body_too_complex'],
  ['exits', {}, 'internal'],
  ['throws', {}, 'internal'],
];

for (const [does, options, code] of cases) {
  test(`a decoding thread that ${does} costs only its own request`, async () => {
    await withBadThreads(does, options, async (pool) => {
      const bad = assert.rejects(pool.decode(jobOf('bad')), (error) => codeOf(error) === code);
      const beside = Array.from({ length: 3 }, () => pool.decode(jobOf('good')));
      assert.deepEqual(
        (await Promise.all(beside)).map(({ kind }) => kind),
        ['decoded', 'decoded', 'decoded'],
      );
      await bad;
      // The thread is replaced.
      assert.equal((await pool.decode(jobOf('good'))).kind, 'decoded');
      await assert.rejects(pool.decode(jobOf('bad')), (error) => codeOf(error) === code);
      assert.equal((await pool.decode(jobOf('good'))).kind, 'decoded');
    });
  });
}

test('one team never uses all threads', async () => {
  await withBadThreads('loops', { cpuMsMax: 120_000, wallMsMax: 120_000 }, async (pool) => {
    const ended: string[] = [];
    const note = (name: string) => () => void ended.push(name);
    const bad = Array.from({ length: 3 }, () => pool.decode(jobOf('bad')).catch(note('bad')));
    await pool.decode(jobOf('good')).then(note('good'));
    assert.deepEqual(ended, ['good']);
    await pool.close();
    await Promise.all(bad);
  });
});

test('a body of a caller that has hung up is not decoded', async () => {
  const pool = openDecodingPool({ module: threadThat('loops') });
  await assert.rejects(
    pool.decode(jobOf('bad'), () => false),
    Failure,
  );
  await pool.close();
});

test('a pool with a busy thread can be closed', async () => {
  const pool = openDecodingPool({ module: threadThat('loops') });
  const bad = assert.rejects(pool.decode(jobOf('bad')), Failure);
  await pool.decode(jobOf('good'));
  await pool.close();
  await bad;
  await assert.rejects(pool.decode(jobOf('good')), Failure);
});

test('the real thread decodes, and reports what is wrong with a body', async () => {
  const pool = openDecodingPool();
  const traces = [{ model: 'm', input: 'Grüße', metadata: { a: 'b' } }, { model: 1 }];
  const { parts, rejected } = await pool.decode(jobOf('t', { traces }));
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
  await assert.rejects(pool.decode(jobOf('t', { traces: [] })), (error) => {
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
  await assert.rejects(pool.decode(job), (error) => codeOf(error) === 'invalid_input');
  const traces = [{ model: 'my-model', prompt_tokens: 500_000, completion_tokens: 0 }];
  const { parts } = await pool.decode({ ...jobOf('t', { traces }), prices });
  assert.equal(parts[0] && readPart(parts[0]).drafts[0]?.cost_usd, 1);
  await pool.close();
});
