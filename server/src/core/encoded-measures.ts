import { BucketWriter } from './bucket-writer.ts';
import { compile } from './compile.ts';
import type { Histogram } from './latency-histogram.ts';
import { countNames, sumNames } from './measures.ts';
import type { Measures } from './measures.ts';
import { VarintReader, VarintWriter } from './varint.ts';

/**
 * Stored measures: everything except calls, which are a column of their own by which a store can sort, and errors: the status is part of
 * a stored group, so either all of its calls failed or none. Most questions do not need the latency histogram, so it is a column of its
 * own too.
 */
export interface EncodedMeasures {
  sums: Uint8Array;
  latencies: Uint8Array;
}

/** The stored sums begin with a version, so that measures can be added later. */
export const sumsVersion = 1;
export const unknownVersion = 'the stored sums have an unknown version';

/** In the order in which they are stored. */
export const encodedNames = [...countNames, ...sumNames] as const;

export function encodeMeasures(
  measures: Readonly<Measures>,
  latencies: readonly BucketCount[] = inOrder(measures.latencies),
): EncodedMeasures {
  const writer = new VarintWriter();
  writer.writeNumber(sumsVersion);
  writeSums(writer, measures);
  return { sums: writer.bytes(), latencies: encodeLatencies(latencies) };
}

const writeSums = compile<(writer: VarintWriter, measures: Readonly<Measures>) => void>(
  `(writer, measures) => {
    ${countNames.map((name) => `writer.writeNumber(measures.${name});`).join(' ')}
    ${sumNames.map((name) => `writer.writeBigInt(measures.${name});`).join(' ')}
  }`,
);

export type BucketCount = readonly [bucket: number, count: number];

/** By bucket. Most groups of a batch have one bucket, which needs no sorting. */
export function inOrder(latencies: Histogram): readonly BucketCount[] {
  if (latencies.size < 2) return [...latencies];
  const buckets = Uint16Array.from(latencies.keys()).sort();
  return Array.from(buckets, (bucket) => [bucket, latencies.get(bucket) ?? 0]);
}

function encodeLatencies(counts: readonly BucketCount[]): Uint8Array {
  const writer = new BucketWriter(4 * counts.length);
  for (const [bucket, count] of counts) writer.write(bucket, count);
  return writer.bytes();
}

/** The stored form of stored measures plus those of a batch, whose latencies are given in order. */
export function addToEncoded(
  stored: EncodedMeasures,
  batch: Readonly<Measures>,
  added: readonly BucketCount[] = inOrder(batch.latencies),
): EncodedMeasures {
  const reader = new VarintReader(stored.sums);
  if (reader.readNumber() !== sumsVersion) throw new Error(unknownVersion);
  const writer = new VarintWriter();
  writer.writeNumber(sumsVersion);
  mergeSums(reader, writer, batch);
  const latencies = added.length > 0 ? mergeLatencies(stored.latencies, added) : stored.latencies;
  return { sums: writer.bytes(), latencies };
}

const mergeSums = compile<
  (reader: VarintReader, writer: VarintWriter, batch: Readonly<Measures>) => void
>(
  `(reader, writer, batch) => {
    ${countNames.map((name) => `writer.writeNumber(reader.readNumber() + batch.${name});`).join(' ')}
    ${sumNames.map((name) => `writer.writeBigInt(reader.readBigInt() + batch.${name});`).join(' ')}
  }`,
);

/** A histogram may have hundreds of buckets of which a batch changes a few, so it is merged without being decoded. */
function mergeLatencies(stored: Uint8Array, added: readonly BucketCount[]): Uint8Array {
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
    writer.write(bucket, count);
  }
  for (const [bucket, count] of added.slice(at)) writer.write(bucket, count);
  return writer.bytes();
}
