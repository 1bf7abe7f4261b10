import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  addMeasures,
  addToEncoded,
  decodeMeasures,
  encodeMeasures,
  noMeasures,
} from '../../src/core/measures.ts';
import type { Measures } from '../../src/core/measures.ts';

const count = fc.oneof(
  fc.nat({ max: 300 }),
  fc.maxSafeNat().map((value) => Math.floor(value / 4)),
);
const sum = fc.oneof(fc.bigInt({ min: 0n, max: 300n }), fc.bigInt({ min: 0n, max: 2n ** 100n }));

/** Sums of a group of successes. */
const anyMeasures = fc
  .record({
    counts: fc.tuple(count, count, count),
    sums: fc.array(sum, { minLength: 10, maxLength: 10 }),
    latencies: fc.dictionary(
      fc.nat({ max: 860 }).map(String),
      fc.integer({ min: 1, max: 2 ** 40 }),
    ),
  })
  .map(({ counts: [calls, uncosted_calls, latency_count], sums, latencies }): Measures => {
    const measures = { ...noMeasures(), calls, uncosted_calls, latency_count };
    const names = Object.keys(measures) as (keyof Measures)[];
    const ofSums = names.filter((name) => typeof measures[name] === 'bigint');
    for (const [i, name] of ofSums.entries()) Object.assign(measures, { [name]: sums[i] ?? 0n });
    for (const [bucket, own] of Object.entries(latencies)) {
      measures.latencies.set(Number(bucket), own);
    }
    return measures;
  });

test('sums are the same after they were stored', () => {
  fc.assert(
    fc.property(anyMeasures, (measures) => {
      const stored = encodeMeasures(measures);
      assert.deepEqual(decodeMeasures(stored, measures.calls, false), measures);
    }),
  );
});

test('adding to stored sums gives the same bytes as adding the sums themselves', () => {
  fc.assert(
    fc.property(anyMeasures, anyMeasures, (first, second) => {
      const merged = addToEncoded(encodeMeasures(first), second);
      const total = structuredClone(first);
      addMeasures(total, second);
      assert.deepEqual(merged, encodeMeasures(total));
    }),
    { numRuns: 1_000 },
  );
});
