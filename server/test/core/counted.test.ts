import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted } from '../../src/core/counted.ts';

test('only one of a thing is counted in the singular', () => {
  assert.deepEqual(
    [0, 1, 2].map((count) => counted(count, 'trace')),
    ['0 traces', '1 trace', '2 traces'],
  );
});
