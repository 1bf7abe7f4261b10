import { bucketCount } from './latency-histogram.ts';
import type { Histogram } from './latency-histogram.ts';

/**
 * Adds up latency histograms. Most groups have few buckets, and there may be many groups, so a small histogram is a map; with more buckets,
 * one number for every bucket takes less memory, and adding is several times as fast.
 */
export class LatencyCounts {
  #few: Map<number, number> | null = new Map();
  #all: Float64Array | null = null;

  add(bucket: number, count: number): void {
    if (bucket >= bucketCount) throw new RangeError('a stored latency is out of range');
    const all = this.#all;
    if (all) {
      all[bucket] = (all[bucket] ?? 0) + count;
      return;
    }
    const few = this.#few ?? new Map<number, number>();
    few.set(bucket, (few.get(bucket) ?? 0) + count);
    if (few.size > fewMax) this.#spread(few);
  }

  /** Stored counts. */
  addEncoded(bytes: Uint8Array): void {
    let at = 0;
    for (let bucket = 0; at < bytes.length;) {
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
      bucket += distance;
      this.add(bucket, count);
    }
  }

  addTo(histogram: Histogram): void {
    for (const [bucket, count] of this.#few ?? []) histogram.set(bucket, count);
    for (const [bucket, count] of this.#all?.entries() ?? []) {
      if (count > 0) histogram.set(bucket, count);
    }
  }

  #spread(few: ReadonlyMap<number, number>): void {
    const all = new Float64Array(bucketCount);
    for (const [bucket, count] of few) all[bucket] = count;
    this.#all = all;
    this.#few = null;
  }
}

const fewMax = 32;

function cutOff(): never {
  throw new RangeError('a stored number is cut off');
}
