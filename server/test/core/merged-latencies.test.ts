import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergeLatencies } from '../../src/core/latency-blob.ts';
import type { BucketCount } from '../../src/core/latency-blob.ts';
import { LatencyCounts } from '../../src/core/latency-counts.ts';
import { bucketCount } from '../../src/core/latency-histogram.ts';
import type { Histogram } from '../../src/core/latency-histogram.ts';

const empty = new Uint8Array();

function encoded(counts: readonly BucketCount[]): Uint8Array {
  return mergeLatencies(empty, counts);
}

function decoded(bytes: Uint8Array): Histogram {
  const counts = new LatencyCounts();
  counts.addEncoded(bytes);
  const histogram: Histogram = new Map();
  counts.addTo(histogram);
  return histogram;
}

const rows: [what: string, stored: BucketCount[], added: BucketCount[], merged: BucketCount[]][] = [
  ['nothing and nothing', [], [], []],
  [
    'a new bucket',
    [[5, 2]],
    [[7, 1]],
    [
      [5, 2],
      [7, 1],
    ],
  ],
  [
    'a bucket before the others',
    [[5, 2]],
    [[0, 1]],
    [
      [0, 1],
      [5, 2],
    ],
  ],
  ['more of a bucket', [[5, 2]], [[5, 300]], [[5, 302]]],
  ['less of a bucket', [[5, 300]], [[5, -299]], [[5, 1]]],
  [
    'a bucket that becomes empty',
    [
      [5, 2],
      [9, 1],
    ],
    [[5, -2]],
    [[9, 1]],
  ],
  [
    'the last bucket becomes empty',
    [
      [5, 2],
      [9, 1],
    ],
    [[9, -1]],
    [[5, 2]],
  ],
  ['the only bucket becomes empty', [[5, 2]], [[5, -2]], []],
  [
    'one moves to its neighbour',
    [[5, 1]],
    [
      [5, -1],
      [6, 1],
    ],
    [[6, 1]],
  ],
];

for (const [what, stored, added, merged] of rows) {
  test(`merged histograms: ${what}`, () => {
    assert.deepEqual(mergeLatencies(encoded(stored), added), encoded(merged));
  });
}

const histogram = fc
  .uniqueArray(
    fc.tuple(fc.integer({ min: 0, max: bucketCount - 1 }), fc.integer({ min: 1, max: 2 ** 40 })),
    { selector: ([bucket]) => bucket, maxLength: 60 },
  )
  .map((counts): BucketCount[] => counts.sort(([a], [b]) => a - b));

test('what is added to a histogram and taken away again leaves the same bytes', () => {
  fc.assert(
    fc.property(histogram, histogram, (stored, added) => {
      const before = encoded(stored);
      const both = mergeLatencies(before, added);
      const expected = new Map(stored);
      for (const [bucket, count] of added)
        expected.set(bucket, (expected.get(bucket) ?? 0) + count);
      assert.deepEqual(decoded(both), new Map([...expected].sort(([a], [b]) => a - b)));
      const removed = added.map(([bucket, count]): BucketCount => [bucket, -count]);
      assert.deepEqual(mergeLatencies(both, removed), before);
    }),
  );
});
