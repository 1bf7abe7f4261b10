import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addToEncoded, encodeMeasures } from '../../src/core/encoded-measures.ts';
import { percentile } from '../../src/core/latency-histogram.ts';
import { addMeasures, noMeasures } from '../../src/core/measures.ts';
import type { Measures } from '../../src/core/measures.ts';
import { MeasuresSum, decodeMeasures } from '../../src/core/measures-sum.ts';

const count = fc.oneof(
  fc.nat({ max: 300 }),
  fc.maxSafeNat().map((value) => Math.floor(value / 64)),
);
const sum = fc.oneof(fc.bigInt({ min: 0n, max: 300n }), fc.bigInt({ min: 0n, max: 2n ** 96n }));

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

function storedForm(measures: Measures) {
  return { calls: measures.calls, isError: false, ...encodeMeasures(measures) };
}

test('sums that are part of larger bytes add up to the same, with the same percentiles', () => {
  fc.assert(
    fc.property(fc.array(anyMeasures, { minLength: 1, maxLength: 4 }), (all) => {
      const [packed, plain] = [new MeasuresSum(), new MeasuresSum()];
      for (const measures of all) {
        const { calls, sums, latencies } = storedForm(measures);
        const bytes = Buffer.concat([Buffer.of(0xff), sums, latencies, Buffer.of(0xff)]);
        const latenciesAt = 1 + sums.length;
        packed.addPacked(calls, true, bytes, 1, latenciesAt, bytes.length - 1);
        plain.addEncoded({ calls, isError: true, sums, latencies });
        const cut = () =>
          new MeasuresSum().addPacked(calls, true, bytes, 1, latenciesAt - 1, bytes.length - 1);
        assert.throws(cut, /cut off/);
      }
      const expected = plain.measures();
      assert.deepEqual(packed.measures(), expected);
      for (const percent of [50, 90, 95, 99]) {
        assert.equal(packed.percentile(percent), percentile(expected.latencies, percent));
      }
    }),
  );
});

test('a sum without one of its parts is the sum of the others', () => {
  fc.assert(
    fc.property(anyMeasures, anyMeasures, (one, other) => {
      const [whole, part] = [new MeasuresSum(), new MeasuresSum()];
      whole.add(one);
      whole.add(other);
      part.add(other);
      whole.subtract(part);
      assert.deepEqual(whole.shownMeasures(), shownOf(one));
      assert.deepEqual(sorted(whole.measures()), sorted(one));
      // More can be added to it.
      whole.addWhole(part);
      whole.add(one);
      const twice = { ...noMeasures() };
      for (const measures of [one, other, one]) addMeasures(twice, measures);
      assert.deepEqual(whole.shownMeasures(), shownOf(twice));
    }),
  );
});

function sorted(measures: Measures): Measures {
  return { ...measures, latencies: new Map([...measures.latencies].sort(([a], [b]) => a - b)) };
}

function shownOf(measures: Measures): Measures {
  const sums = new MeasuresSum();
  sums.add(measures);
  return sums.shownMeasures();
}

test('a percentile does not depend on the order of the buckets', () => {
  fc.assert(
    fc.property(anyMeasures, ({ latencies }) => {
      const sorted = new Map([...latencies].sort(([a], [b]) => a - b));
      const reversed = new Map([...sorted].reverse());
      for (const percent of [50, 90, 95, 99]) {
        const ofSorted = percentile(sorted, percent);
        assert.equal(percentile(reversed, percent), ofSorted);
        assert.equal(ofSorted === null, latencies.size === 0);
      }
    }),
  );
});

test('sums are the same after they were stored', () => {
  fc.assert(
    fc.property(anyMeasures, (measures) => {
      assert.deepEqual(decodeMeasures(storedForm(measures)), measures);
    }),
  );
});

test('adding up stored sums gives the same as adding the sums themselves', () => {
  fc.assert(
    fc.property(fc.array(anyMeasures, { maxLength: 40 }), anyMeasures, (stored, last) => {
      const total = noMeasures();
      const sum = new MeasuresSum();
      for (const measures of stored) {
        addMeasures(total, measures);
        sum.addEncoded(storedForm(measures));
      }
      addMeasures(total, last);
      sum.add(last);
      assert.equal(sum.calls, total.calls);
      assert.deepEqual(sum.measures(), total);
    }),
    { numRuns: 1_000 },
  );
});

test('a sum is never wrong because it is too large', () => {
  const sum = new MeasuresSum();
  const large = { ...noMeasures(), cost_picos: 2n ** 102n - 1n };
  sum.addEncoded(storedForm(large));
  assert.deepEqual(sum.measures(), large);
  assert.throws(() => sum.addEncoded(storedForm(large)), /too large/);
  const larger = storedForm({ ...large, cost_picos: 2n ** 102n });
  assert.throws(() => decodeMeasures(larger), /too large/);
});

test('sums without latencies have none', () => {
  fc.assert(
    fc.property(anyMeasures, anyMeasures, (first, second) => {
      const sum = new MeasuresSum(false);
      sum.addEncoded(storedForm(first));
      sum.add(second);
      addMeasures(first, second);
      assert.deepEqual(sum.measures(), { ...first, latencies: new Map() });
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
