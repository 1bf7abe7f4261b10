import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPricer } from '../../src/price.ts';
import type { Seller, Usage } from '../../src/price.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import { only } from '../support/side-by-side.ts';

const installed = (): Promise<unknown> => import('@pydantic/genai-prices');
const openai: Seller = { name: 'openai', url: 'https://api.openai.com/v1' };

async function costOf(
  model: string,
  usage: Usage | undefined,
  seller: Seller = openai,
): Promise<number | null | undefined> {
  const pricer = createPricer(installed);
  const recorder = memoryRecorder();
  pricer.priced(recorder, { model }, usage, seller);
  await pricer.settled();
  assert.deepEqual(recorder.errors, []);
  return only(recorder.traces).cost_usd;
}

test('tokens are priced by model, and cached tokens at their own price', async () => {
  const plain = { input_tokens: 1_000_000, output_tokens: 100_000 };
  assert.equal(await costOf('gpt-4o', plain), 3.5);
  assert.equal(await costOf('gpt-4o', { ...plain, cache_read_tokens: 800_000 }), 2.5);
  const anthropic = { name: 'anthropic', url: 'https://api.anthropic.com' };
  const cached = { ...plain, cache_read_tokens: 400_000, cache_write_tokens: 400_000 };
  assert.equal(await costOf('claude-opus-5-5', cached, anthropic), 4.88);
  const forAnHour = { ...cached, cache_write_1h_tokens: 400_000 };
  assert.equal(await costOf('claude-opus-5-5', forAnHour, anthropic), 6.08);
});

test('the price of the response model comes first, then that of the requested model', async () => {
  const usage = { input_tokens: 1_000_000 };
  const cases: [requested: string, response: string, cost: number | undefined][] = [
    ['my-deployment', 'gpt-4o-2024-08-06', 2.5],
    // This version of gpt-4o had a price of its own.
    ['gpt-4o', 'gpt-4o-2024-05-13', 5],
    ['gpt-4o', 'unknown-version', 2.5],
    ['my-deployment', 'unknown-version', undefined],
  ];
  for (const [requested, response, cost] of cases) {
    const pricer = createPricer(installed);
    const recorder = memoryRecorder();
    pricer.priced(recorder, { model: requested }, usage, openai, response);
    await pricer.settled();
    const { model, cost_usd } = only(recorder.traces);
    assert.deepEqual([model, cost_usd], [requested, cost], `${requested}, ${response}`);
  }
});

test('a price has at most 12 decimals', async () => {
  const cost = await costOf('gemini-2.5-flash', { input_tokens: 10, output_tokens: 3 }, {});
  assert.equal(cost, 0.0000105);
});

test('a model without a known price has no cost, not 0', async () => {
  const usage = { input_tokens: 10, output_tokens: 3 };
  assert.equal(await costOf('my-own-model', usage), undefined);
  assert.equal(await costOf('my-own-model', usage, {}), undefined);
  assert.equal(await costOf('gpt-4o', usage, { name: 'nobody' }), undefined);
});

test('a call with unknown tokens has no cost, not 0', async () => {
  assert.equal(await costOf('gpt-4o', undefined), undefined);
  assert.equal(await costOf('gpt-4o', {}), undefined);
  assert.equal(await costOf('gpt-4o', { cache_read_tokens: 5 }), undefined);
});

test('the URL of the provider takes precedence over the name of the SDK', async () => {
  const groq = { name: 'openai', url: 'https://api.groq.com/openai/v1' };
  const usage = { input_tokens: 1000, output_tokens: 100 };
  assert.equal(await costOf('llama-3.1-8b-instant', usage, groq), 0.000058);
  const local = { name: 'openai', url: 'http://127.0.0.1:11434/v1' };
  assert.equal(await costOf('llama-3.1-8b-instant', usage, local), undefined);
  assert.equal(await costOf('gpt-4o', usage, local), 0.0035);
});

test('a cost that the caller gives is kept, including 0', () => {
  const pricer = createPricer(installed);
  const recorder = memoryRecorder();
  for (const cost_usd of [0, 1.25]) {
    pricer.priced(recorder, { model: 'gpt-4o', cost_usd }, { input_tokens: 9 }, openai);
  }
  assert.deepEqual(
    recorder.traces.map(({ cost_usd }) => cost_usd),
    [0, 1.25],
  );
});

test('traces wait for the price list in their order, and the list is loaded once', async () => {
  let imports = 0;
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const pricer = createPricer(async () => {
    imports += 1;
    await gate;
    return installed();
  });
  const recorder = memoryRecorder();
  pricer.load();
  for (const input_tokens of [1000, 2000]) {
    pricer.priced(recorder, { model: 'gpt-4o' }, { input_tokens }, openai);
  }
  assert.deepEqual(recorder.traces, []);
  open();
  await pricer.settled();
  assert.deepEqual(
    recorder.traces.map(({ cost_usd }) => cost_usd),
    [0.0025, 0.005],
  );
  assert.equal(imports, 1);
});

test('without the price package, traces are recorded without a cost, and a warning says what to install', async () => {
  const missing = [
    () => Promise.reject(new Error('not installed')),
    () => Promise.resolve(undefined),
    () => Promise.resolve({ calcPrice: 'another package' }),
  ];
  for (const importList of missing) {
    const pricer = createPricer(importList);
    const recorder = memoryRecorder();
    pricer.priced(recorder, { model: 'gpt-4o' }, { input_tokens: 9 }, openai);
    await pricer.settled();
    pricer.priced(recorder, { model: 'gpt-4o' }, { input_tokens: 9 }, openai);
    assert.deepEqual(recorder.traces, [{ model: 'gpt-4o' }, { model: 'gpt-4o' }]);
    assert.deepEqual(recorder.errors, []);
    assert.deepEqual(recorder.warnings, ['prices_missing', 'prices_missing']);
  }
});

test('no warning about the price package if a call has a cost or no tokens, or if the package is there', async () => {
  const missing = createPricer(() => Promise.resolve(undefined));
  const recorder = memoryRecorder();
  missing.priced(recorder, { model: 'gpt-4o', cost_usd: 1 }, { input_tokens: 9 }, openai);
  missing.priced(recorder, { model: 'gpt-4o' }, undefined, openai);
  await missing.settled();
  const present = createPricer(installed);
  present.priced(recorder, { model: 'my-own-model' }, { input_tokens: 9 }, openai);
  await present.settled();
  assert.equal(recorder.traces.length, 3);
  assert.deepEqual(recorder.warnings, []);
});

test('inconsistent token counts have no cost, and that is reported', async () => {
  const pricer = createPricer(installed);
  const recorder = memoryRecorder();
  const usage = { input_tokens: 10, cache_read_tokens: 20 };
  pricer.priced(recorder, { model: 'gpt-4o' }, usage, openai);
  await pricer.settled();
  assert.deepEqual(recorder.traces, [{ model: 'gpt-4o' }]);
  assert.equal(recorder.errors.length, 1);
});
