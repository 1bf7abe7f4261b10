/**
 * Latencies are counted in buckets, so that percentiles of any sum of traces can be computed later. The bounds are integers, fixed for
 * ever, since bucket numbers are stored. A bucket's value differs from every latency in it by at most 1 %; up to 98 ms it is exact.
 */
const valueMax = 2 ** 31 - 1;

/** The value that represents each bucket, and the first latency of each bucket. */
const { values, firsts } = layOut();

function layOut(): { values: readonly number[]; firsts: readonly number[] } {
  const laidOut = { values: [] as number[], firsts: [] as number[] };
  for (let first = 0; first <= valueMax;) {
    const value = Math.floor(first * 1.01);
    laidOut.firsts.push(first);
    laidOut.values.push(value);
    first = Math.floor(value / 0.99) + 1;
  }
  return laidOut;
}

export const bucketCount = values.length;

const cellBits = 6;
const cellsPerOctave = 1 << cellBits;

/** For the leading bits of a latency, the first bucket that can hold it. This avoids a logarithm or a search per trace. */
const firstBuckets = new Uint16Array(32 * cellsPerOctave);
for (let octave = cellBits, bucket = 0; octave < 31; octave++) {
  for (let cell = 0; cell < cellsPerOctave; cell++) {
    const latency = (cellsPerOctave + cell) * 2 ** (octave - cellBits);
    while ((firsts[bucket + 1] ?? Infinity) <= latency) bucket += 1;
    firstBuckets[octave * cellsPerOctave + cell] = bucket;
  }
}

/** The bucket of a latency, from 0 to 2^31 - 1. */
export function bucketOf(milliseconds: number): number {
  if (milliseconds < cellsPerOctave) return milliseconds;
  const octave = 31 - Math.clz32(milliseconds);
  const cell = (milliseconds >>> (octave - cellBits)) & (cellsPerOctave - 1);
  let bucket = firstBuckets[octave * cellsPerOctave + cell] ?? 0;
  while ((firsts[bucket + 1] ?? Infinity) <= milliseconds) bucket += 1;
  return bucket;
}

/** How many traces are in each bucket that has any. */
export type Histogram = Map<number, number>;

export function addHistogram(sum: Histogram, other: Histogram): void {
  for (const [bucket, count] of other) sum.set(bucket, (sum.get(bucket) ?? 0) + count);
}

/** `part` must be included in `sum`. */
export function subtractHistogram(sum: Histogram, part: Histogram): void {
  for (const [bucket, count] of part) {
    const left = (sum.get(bucket) ?? 0) - count;
    if (left > 0) sum.set(bucket, left);
    else sum.delete(bucket);
  }
}

/** The nearest-rank percentile in milliseconds; null if nothing was counted. */
export function percentile(histogram: Histogram, percent: number): number | null {
  let count = 0;
  let last = -1;
  let isSorted = true;
  for (const [bucket, own] of histogram) {
    count += own;
    if (bucket < last) isSorted = false;
    last = bucket;
  }
  // Those that were stored are sorted already.
  const counts = isSorted ? histogram : [...histogram].sort(([a], [b]) => a - b);
  let left = rankOf(count, percent);
  for (const [bucket, own] of counts) {
    left -= own;
    if (left <= 0) return valueOfBucket(bucket);
  }
  return null;
}

/** Those that replies have. */
export const percents = [50, 90, 95, 99] as const;

/** In the order of `percents`. */
export type Percentiles = readonly (number | null)[];

/** The number of the latency that is the percentile, if all are sorted. The first is 1. */
export function rankOf(count: number, percent: number): number {
  return Math.max(1, Math.ceil((count * percent) / 100));
}

export function valueOfBucket(bucket: number): number | null {
  return values[bucket] ?? null;
}
