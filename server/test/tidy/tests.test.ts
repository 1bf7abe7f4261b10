import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/seeded-random.ts';
import { ownWaits, unseededRandoms } from './rules.ts';
import type { SourceFile } from './rules.ts';

const server = new URL('../../', import.meta.url);
const files: SourceFile[] = globSync('{test,scripts}/**/*.ts', { cwd: server })
  .filter((path) => !path.startsWith('test/tidy/'))
  .map((path) => ({ path, text: readFileSync(new URL(path, server), 'utf8') }));

test('tests wait with eventually, which has a deadline, and not with loops of their own', () => {
  assert.ok(files.length > 100);
  assert.deepEqual(ownWaits(files), []);
  const planted = [
    { path: 'a.ts', text: 'while (!(await isReady())) await sleep(10);' },
    { path: 'b.ts', text: 'for (let i = 0; i < 9 && !done; i++) {\n  await delay(10);\n}' },
    { path: 'c.ts', text: 'async function untilReady(): Promise<void> {' },
    { path: 'd.ts', text: 'for (let waits = 0; count < 5; waits++) {\n  assert.ok(waits < 9);' },
  ];
  assert.deepEqual(
    ownWaits(planted),
    planted.map(({ path }) => path),
  );
});

test('random numbers in tests come from a seed, so that a run can be repeated', () => {
  assert.deepEqual(unseededRandoms(files), []);
  assert.deepEqual(unseededRandoms([{ path: 'a.ts', text: 'Math.random() < 0.5' }]), ['a.ts']);
});

test('the same seed gives the same numbers, and another seed gives others', () => {
  const numbers = (seed: number): number[] => Array.from({ length: 20 }, seededRandom(seed));
  assert.deepEqual(numbers(7), numbers(7));
  assert.notDeepEqual(numbers(7), numbers(8));
  assert.ok(numbers(7).every((number) => number >= 0 && number < 1));
});

test('eventually returns what it finds, and its failure says what it waited for', async () => {
  let looks = 0;
  const third = await eventually('a third look', 120_000, () => (++looks === 3 ? looks : null), 1);
  assert.equal(third, 3);
  const never = eventually('the impossible', 30, async () => false, 5);
  await assert.rejects(never, { message: 'the impossible: not within 30 ms' });
});

test(
  'eventually fails at its deadline even if a look never returns',
  { timeout: 5_000 },
  async () => {
    const stuck = eventually('an answer', 30, () => new Promise<true>(() => {}));
    await assert.rejects(stuck, { message: 'an answer: not within 30 ms' });
  },
);
