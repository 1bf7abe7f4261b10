import { BucketWriter } from './bucket-writer.ts';
import { bucketCount, percentile, rankOf, valueOfBucket } from './latency-histogram.ts';
import type { Histogram } from './latency-histogram.ts';

/**
 * Adds up latency histograms. Most groups have few buckets, and there may be many groups, so a small histogram is a list that is searched;
 * with more buckets, one number for every bucket takes less memory, and adding is several times as fast.
 */
export class LatencyCounts {
  #fewBuckets: number[] = [];
  #fewCounts: number[] = [];
  #all: Float64Array | null = null;
  #sum = 0;

  /** How many latencies were counted. */
  get count(): number {
    return this.#sum;
  }

  add(bucket: number, count: number): void {
    if (bucket >= bucketCount) throw new RangeError('a stored latency is out of range');
    this.#sum += count;
    const all = this.#all;
    if (all) {
      all[bucket] = (all[bucket] ?? 0) + count;
      return;
    }
    const place = this.#fewBuckets.indexOf(bucket);
    if (place >= 0) {
      this.#fewCounts[place] = (this.#fewCounts[place] ?? 0) + count;
      return;
    }
    this.#fewBuckets.push(bucket);
    this.#fewCounts.push(count);
    if (this.#fewBuckets.length > fewMax) this.#spread();
  }

  /** Stored counts: all of the bytes, or some of them. */
  addEncoded(bytes: Uint8Array, from = 0, to = bytes.length): void {
    let at = from;
    for (let bucket = 0; at < to;) {
      let byte = bytes[at++] ?? 0;
      let distance = byte & 0x7f;
      for (let unit = 0x80; byte >= 0x80; unit *= 0x80) {
        byte = bytes[at++] ?? cutOff();
        distance += (byte & 0x7f) * unit;
      }
      byte = bytes[at++] ?? cutOff();
      let count = byte & 0x7f;
      for (let unit = 0x80; byte >= 0x80; unit *= 0x80) {
        byte = bytes[at++] ?? cutOff();
        count += (byte & 0x7f) * unit;
      }
      if (at > to) cutOff();
      bucket += distance;
      this.add(bucket, count);
    }
  }

  /** The same as of the histogram. */
  percentile(percent: number): number | null {
    const all = this.#all;
    if (!all) return percentile(new Map(this.#few()), percent);
    let left = rankOf(this.#sum, percent);
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      left -= all[bucket] ?? 0;
      if (left <= 0) return valueOfBucket(bucket);
    }
    return null;
  }

  addCounts(other: LatencyCounts): void {
    for (const [place, bucket] of other.#fewBuckets.entries()) {
      this.add(bucket, other.#fewCounts[place] ?? 0);
    }
    if (!other.#all) return;
    const all = this.#all ?? this.#spread();
    this.#sum += other.#sum;
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      all[bucket] = (all[bucket] ?? 0) + (other.#all[bucket] ?? 0);
    }
  }

  /** `part` must be included. */
  subtract(part: LatencyCounts): void {
    for (const [place, bucket] of part.#fewBuckets.entries()) {
      this.add(bucket, -(part.#fewCounts[place] ?? 0));
    }
    if (!part.#all) return;
    const all = this.#all ?? this.#spread();
    this.#sum -= part.#sum;
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      all[bucket] = (all[bucket] ?? 0) - (part.#all[bucket] ?? 0);
    }
  }

  /** As it is stored. */
  encoded(): Uint8Array {
    const few = this.#few().sort(([a], [b]) => a - b);
    const writer = new BucketWriter();
    for (const [bucket, count] of few) writer.write(bucket, count);
    const all = this.#all;
    for (let bucket = 0; all && bucket < bucketCount; bucket++) {
      const count = all[bucket] ?? 0;
      if (count > 0) writer.write(bucket, count);
    }
    return writer.bytes();
  }

  addTo(histogram: Histogram): void {
    for (const [bucket, count] of this.#few()) histogram.set(bucket, count);
    const all = this.#all;
    if (!all) return;
    // An iterator over every bucket would take several times as long.
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const count = all[bucket] ?? 0;
      if (count > 0) histogram.set(bucket, count);
    }
  }

  #few(): [bucket: number, count: number][] {
    const few = this.#fewBuckets.map((bucket, place): [number, number] => [
      bucket,
      this.#fewCounts[place] ?? 0,
    ]);
    // Nothing is left of those that were subtracted.
    return few.filter(([, count]) => count > 0);
  }

  #spread(): Float64Array {
    const all = new Float64Array(bucketCount);
    for (const [bucket, count] of this.#few()) all[bucket] = count;
    this.#all = all;
    this.#fewBuckets = [];
    this.#fewCounts = [];
    return all;
  }
}

const fewMax = 32;

function cutOff(): never {
  throw new RangeError('a stored number is cut off');
}
