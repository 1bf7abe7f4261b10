import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasMoreValues } from '../../src/http/json-values.ts';

const count = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 1;
  return 1 + Object.values(value).reduce((sum: number, part) => sum + count(part), 0);
};
const containers = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce((sum: number, part) => sum + containers(part), 0);
};
const hasMore = (text: string, max: number): boolean => hasMoreValues(Buffer.from(text), max);

test('a text of more values than the bound is found, and one within it never is', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 40 }), (text, max) => {
      const value: unknown = JSON.parse(text);
      const spread = text.length > 2 * max;
      if (count(value) + containers(value) <= max) assert.equal(hasMore(text, max), false);
      if (count(value) > max && spread) assert.equal(hasMore(text, max), true);
    }),
    { numRuns: 2_000 },
  );
});

test('what stands inside strings does not count, however it is escaped', () => {
  const strings = [',,,,[[[[{{{{', '\\",,,,,,', '\\\\', '\\\\\\",,[[', '"', 'ä,,,€,,,😀,,'];
  const text = JSON.stringify(strings);
  assert.equal(hasMore(text, strings.length + 2), false);
  assert.equal(hasMore(text, strings.length - 1), true);
});

test('a string that never ends, and a flood of empty lists', () => {
  assert.equal(hasMore(`["${','.repeat(1_000)}`, 10), false);
  assert.equal(hasMore(`[${'[],'.repeat(1_000)}[]]`, 500), true);
  assert.equal(hasMore('['.repeat(1_000), 500), false);
  assert.equal(hasMore('['.repeat(1_001), 500), true);
});
