import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonOverBounds, parseJson } from '../../src/http/decoding/bounded-json.ts';

const count = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 1;
  return 1 + Object.values(value).reduce((sum: number, part) => sum + count(part), 0);
};
const containers = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce((sum: number, part) => sum + containers(part), 0);
};
const depthOf = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
};

/** The bound that a text exceeds; null if it was parsed, or is not valid JSON. */
function exceeded(text: string, valuesMax: number, depthMax = 1_000_000): string | null {
  try {
    parseJson(text, { valuesMax, depthMax });
    return null;
  } catch (error) {
    return error instanceof JsonOverBounds ? error.exceeded : null;
  }
}
const hasMore = (text: string, max: number): boolean => exceeded(text, max) === 'valuesMax';

test('a text is parsed as JSON.parse would, and one nested deeper than the bound never is', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 6 }), (text, depthMax) => {
      const value: unknown = JSON.parse(text);
      const isDeep = depthOf(value) > depthMax;
      assert.equal(exceeded(text, 1_000_000, depthMax), isDeep ? 'depthMax' : null);
      if (!isDeep) assert.deepEqual(parseJson(text, { valuesMax: 1_000_000, depthMax }), value);
    }),
    { numRuns: 1_000 },
  );
});

test('a text of more values than the bound is found, and one within it never is', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 40 }), (text, max) => {
      const value: unknown = JSON.parse(text);
      if (count(value) + containers(value) <= max) assert.equal(hasMore(text, max), false);
      if (count(value) > max) assert.equal(hasMore(text, max), true);
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
