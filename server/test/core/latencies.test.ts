import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { inOrder, mergeLatencies } from '../../src/core/latency-blob.ts';
import { LatencyCounts } from '../../src/core/latency-counts.ts';
import { addHistogram, percentile } from '../../src/core/latency-histogram.ts';
import type { Histogram } from '../../src/core/latency-histogram.ts';

const histograms = fc
  .dictionary(fc.nat({ max: 860 }).map(String), fc.integer({ min: 1, max: 2 ** 40 }))
  .map((counts): Histogram => {
    return new Map(Object.entries(counts).map(([bin, count]) => [Number(bin), count]));
  });

const nothing = new Uint8Array();
const stored = (histogram: Histogram): Uint8Array => mergeLatencies(nothing, inOrder(histogram));

function decoded(bytes: Uint8Array): Histogram {
  const counts = new LatencyCounts();
  counts.addEncoded(bytes);
  const histogram: Histogram = new Map();
  counts.addTo(histogram);
  return histogram;
}

const sorted = (histogram: Histogram): Histogram =>
  new Map([...histogram].sort(([a], [b]) => a - b));

function sumOf(...all: readonly Histogram[]): Histogram {
  const sum: Histogram = new Map();
  for (const histogram of all) addHistogram(sum, histogram);
  return sum;
}

test('a percentile does not depend on the order of the bins', () => {
  fc.assert(
    fc.property(histograms, (latencies) => {
      const ascending = sorted(latencies);
      const reversed = new Map([...ascending].reverse());
      for (const percent of [50, 90, 95, 99]) {
        const expected = percentile(ascending, percent);
        assert.equal(percentile(reversed, percent), expected);
        assert.equal(expected === null, latencies.size === 0);
      }
    }),
  );
});

test('a histogram is the same after it was stored', () => {
  fc.assert(
    fc.property(histograms, (histogram) => {
      assert.deepEqual(sorted(decoded(stored(histogram))), sorted(histogram));
    }),
  );
});

test('adding to a stored histogram gives the same bytes as adding the histograms', () => {
  fc.assert(
    fc.property(histograms, histograms, (one, other) => {
      assert.deepEqual(mergeLatencies(stored(one), inOrder(other)), stored(sumOf(one, other)));
    }),
    { numRuns: 1_000 },
  );
});

test('taking a part away from a stored histogram leaves the bytes of the rest', () => {
  fc.assert(
    fc.property(histograms, histograms, (rest, part) => {
      const negative = inOrder(part).map(([bin, count]) => [bin, -count] as const);
      assert.deepEqual(mergeLatencies(stored(sumOf(rest, part)), negative), stored(rest));
    }),
    { numRuns: 1_000 },
  );
});

test('counts add up, and subtracting one part leaves the counts of the others', () => {
  fc.assert(
    fc.property(histograms, histograms, (one, other) => {
      const [whole, part] = [new LatencyCounts(), new LatencyCounts()];
      for (const histogram of [one, other]) whole.addEncoded(stored(histogram));
      part.addEncoded(stored(other));
      const total = sumOf(one, other);
      for (const percent of [50, 90, 95, 99]) {
        assert.equal(whole.percentile(percent), percentile(total, percent));
      }
      whole.subtract(part);
      const left: Histogram = new Map();
      whole.addTo(left);
      assert.deepEqual(sorted(left), sorted(one));
    }),
  );
});

test('a histogram that is cut off is refused', () => {
  const bytes = stored(new Map([[200, 300]]));
  assert.throws(() => new LatencyCounts().addEncoded(bytes.subarray(0, -1)), /cut off/);
});
