import { BucketWriter } from './bucket-writer.ts';
import type { Histogram } from './latency-histogram.ts';
import { VarintReader } from './varint.ts';

export type BucketCount = readonly [bucket: number, count: number];

/** By bucket. Most groups of a batch have one bucket, which needs no sorting. */
export function inOrder(latencies: Histogram): readonly BucketCount[] {
  if (latencies.size < 2) return [...latencies];
  const buckets = Uint16Array.from(latencies.keys()).sort();
  return Array.from(buckets, (bucket) => [bucket, latencies.get(bucket) ?? 0]);
}

/**
 * A histogram may have hundreds of buckets of which a batch changes a few, so it is merged without being decoded. Counts of a batch may be
 * negative; buckets without a count are left out.
 */
export function mergeLatencies(stored: Uint8Array, added: readonly BucketCount[]): Uint8Array {
  const reader = new VarintReader(stored);
  const writer = new BucketWriter(stored.length + 8 * added.length);
  let at = 0;
  for (let bucket = 0; !reader.isAtEnd;) {
    bucket += reader.readNumber();
    let count = reader.readNumber();
    for (; at < added.length; at++) {
      const [addedBucket = 0, addedCount = 0] = added[at] ?? [];
      if (addedBucket > bucket) break;
      if (addedBucket === bucket) count += addedCount;
      else writer.write(addedBucket, addedCount);
    }
    if (count !== 0) writer.write(bucket, count);
  }
  for (const [bucket, count] of added.slice(at)) writer.write(bucket, count);
  return writer.bytes();
}
