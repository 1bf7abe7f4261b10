import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measure } from '../../src/measure.ts';
import { memoryRecorder, turn } from '../support/memory-recorder.ts';
import { lastingTrace, only } from '../support/side-by-side.ts';

const call = { model: 'gpt-4o', feature: 'search', user: 'user-1', input: 'question' };
const recorded = {
  model: 'gpt-4o',
  input: 'question',
  status: 'success',
  feature_name: 'search',
  user_identifier: 'user-1',
};

test('measure returns the result of an async function and records the call', async () => {
  const recorder = memoryRecorder();
  const result = { rows: 1 };
  const returned = await measure(recorder, call, async (set) => {
    await turn(30);
    set({ output: { rows: 1 }, prompt_tokens: 1000 });
    set({ completion_tokens: 100, cost_usd: 0.5 });
    return result;
  });
  assert.equal(returned, result);
  const trace = only(await recorder.settled(1));
  assert.ok((trace.latency_ms ?? 0) >= 29);
  assert.deepEqual(lastingTrace(trace), {
    ...recorded,
    output: '{"rows":1}',
    prompt_tokens: 1000,
    completion_tokens: 100,
    cost_usd: 0.5,
  });
});

test('measure of a sync function is sync', async () => {
  const recorder = memoryRecorder();
  const returned: number = measure(recorder, call, (set) => {
    set({ output: 'four' });
    return 4;
  });
  assert.equal(returned, 4);
  assert.deepEqual(lastingTrace(only(await recorder.settled(1))), { ...recorded, output: 'four' });
});

test('an error reaches the caller unchanged, and is recorded with what was set', async () => {
  const recorder = memoryRecorder();
  const error = new TypeError('no luck');
  const failing = measure(recorder, call, async (set) => {
    set({ output: 'half' });
    throw error;
  });
  await assert.rejects(failing, (thrown) => thrown === error);
  const throwing = (): unknown =>
    measure(recorder, call, () => {
      throw error;
    });
  assert.throws(throwing, (thrown) => thrown === error);
  const traces = (await recorder.settled(2)).map(lastingTrace);
  const failed = { ...recorded, status: 'error', error_message: 'no luck' };
  assert.deepEqual(traces, [{ ...failed, output: 'half' }, failed]);
});

test('any thrown value is recorded as text', async () => {
  const recorder = memoryRecorder();
  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  const caused = new Error('no answer', {
    cause: new Error('no network', { cause: Object.assign(new Error(''), { code: 'ENET' }) }),
  });
  const odd = [
    undefined,
    null,
    '',
    'text',
    42,
    { message: 'in an object' },
    {},
    new Error(''),
    loop,
    caused,
  ];
  for (const thrown of odd) {
    // oxlint-disable-next-line typescript/only-throw-error
    await measure(recorder, call, async () => Promise.reject(thrown)).catch(() => {});
  }
  const messages = (await recorder.settled(odd.length)).map(({ error_message }) => error_message);
  assert.deepEqual(messages, [
    'unknown error',
    'unknown error',
    'unknown error',
    'text',
    '42',
    'in an object',
    '{}',
    'Error',
    '[object Object]',
    'no answer (cause: no network, ENET)',
  ]);
});

test('a call with an error_message is recorded as an error although nothing was thrown', async () => {
  const recorder = memoryRecorder();
  measure(recorder, call, (set) => set({ error_message: 'refused' }));
  const { status, error_message } = only(await recorder.settled(1));
  assert.deepEqual([status, error_message], ['error', 'refused']);
});

test('tokens are recorded without a cost, which the server computes by the model and the provider', async () => {
  const recorder = memoryRecorder();
  const usage = { prompt_tokens: 1000, completion_tokens: 100 };
  measure(recorder, call, (set) => set(usage));
  measure(recorder, { ...call, provider: 'nobody' }, (set) =>
    set({ ...usage, cached_tokens: 800 }),
  );
  const [first, second] = await recorder.settled(2);
  assert.deepEqual(
    [first?.cost_usd, first?.provider, first?.prompt_tokens],
    [undefined, undefined, 1000],
  );
  assert.deepEqual([second?.provider, second?.cache_read_tokens], ['nobody', 800]);
});

test('binary input is recorded by its size, and values that the server would reject are left out', async () => {
  const recorder = memoryRecorder();
  const input = [{ image: new Uint8Array(10), also: Buffer.from('abc') }, 5n];
  measure(recorder, { model: 'm'.repeat(300), input }, (set) =>
    set({ prompt_tokens: 1.5, completion_tokens: -1, cost_usd: Number.NaN }),
  );
  assert.deepEqual(lastingTrace(only(await recorder.settled(1))), {
    model: 'm'.repeat(255),
    input: '[{"image":"[10 bytes]","also":"[3 bytes]"},"5"]',
    status: 'success',
  });
});

test('input and output that cannot be converted to JSON are left out and reported', async () => {
  const recorder = memoryRecorder();
  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  assert.equal(
    measure(recorder, { model: 'm', input: loop }, (set) => {
      set({ output: loop, cost_usd: 1 });
      return 'done';
    }),
    'done',
  );
  assert.deepEqual(lastingTrace(only(await recorder.settled(1))), {
    model: 'm',
    cost_usd: 1,
    status: 'success',
  });
  assert.equal(recorder.errors.length, 2);
});
