import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compile } from '../../src/core/compile.ts';

test('compiled code sees the names in its scope and nothing of the caller', () => {
  const hidden = 1;
  const double = (value: number): number => 2 * value;
  const run = compile<(value: number) => number>('(value) => double(value) + 1', { double });
  assert.equal(run(20), 41);
  assert.throws(() => compile<() => number>('() => hidden')(), ReferenceError);
  assert.equal(hidden, 1);
});
