import { MeasuresSum } from '../../core/measures-sum.ts';
import { VarintWriter } from '../../core/varint.ts';
import { addRollup, bytesOf } from './packed-bucket.ts';
import type { PackedBucket } from './packed-bucket.ts';

/**
 * Adds up buckets with groups of the same directory, so that next time each group is one rollup. This takes about as long as reading them,
 * so it is done while no question waits, unless they would take too much memory until then.
 */
export class PackedRun {
  readonly #bytesMax: number;
  readonly #partBytesMax: number;
  #merged: PackedBucket | null = null;
  /** Those that are not merged yet. */
  #parts: PackedBucket[] = [];
  #partBytes = 0;
  #isTooLarge = false;

  /** Memory for the sum, and for the buckets that are gathered before they are added up. */
  constructor(bytesMax: number, partBytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#partBytesMax = partBytesMax;
  }

  /** What the buckets take that are not added up yet. */
  get bytes(): number {
    return this.#partBytes;
  }

  add(bucket: PackedBucket): void {
    if (this.#isTooLarge) return;
    this.#parts.push(bucket);
    this.#partBytes += bytesOf(bucket);
    if (this.#partBytes > this.#partBytesMax) for (const _ of this.#merge());
  }

  /** Null if it takes too much memory. Can be interrupted after each group. */
  *packed(): Generator<undefined, PackedBucket | null> {
    if (!this.#isTooLarge) yield* this.#merge();
    return this.#merged;
  }

  *#merge(): Generator<undefined, void> {
    const merged = yield* mergePacked(this.#merged ? [this.#merged, ...this.#parts] : this.#parts);
    this.#isTooLarge = bytesOf(merged) > this.#bytesMax;
    this.#merged = this.#isTooLarge ? null : merged;
    this.#parts = [];
    this.#partBytes = 0;
  }
}

/** One group after the other: the histograms of all groups at once would need far more memory. */
function* mergePacked(buckets: readonly PackedBucket[]): Generator<undefined, PackedBucket> {
  const { ends, owners, places } = rowsByGroup(buckets);
  const writer = new VarintWriter(64 * 1024);
  const groups: number[] = [];
  const starts: number[] = [];
  let row = 0;
  for (const [group, end] of ends.entries()) {
    if (row === end) continue;
    const sum = new MeasuresSum();
    for (; row < end; row++) {
      const bucket = buckets[owners[row] ?? 0];
      // Whether its calls failed is known by its group.
      if (bucket) addRollup(sum, bucket, places[row] ?? 0, false);
    }
    groups.push(group);
    starts.push(writer.length);
    const { sums, latencies } = sum.encoded();
    writer.writeNumber(sum.calls);
    writer.writeNumber(sums.length);
    writer.writeBytes(sums);
    writer.writeBytes(latencies);
    yield;
  }
  starts.push(writer.length);
  return {
    groups: Uint32Array.from(groups),
    starts: Uint32Array.from(starts),
    bytes: writer.bytes(),
  };
}

/** The rollups of all buckets, by group: those of a group end before `ends[group]`, and each is at a place of its owner. */
function rowsByGroup(buckets: readonly PackedBucket[]) {
  let groupsEnd = 0;
  let rows = 0;
  for (const { groups } of buckets) {
    rows += groups.length;
    for (let i = 0; i < groups.length; i++) groupsEnd = Math.max(groupsEnd, (groups[i] ?? 0) + 1);
  }
  // Where the next rollup of each group belongs; after the last one this is where the group ends.
  const ends = new Uint32Array(groupsEnd + 1);
  for (const { groups } of buckets) {
    for (let i = 0; i < groups.length; i++) {
      const after = (groups[i] ?? 0) + 1;
      ends[after] = (ends[after] ?? 0) + 1;
    }
  }
  for (let group = 1; group <= groupsEnd; group++) {
    ends[group] = (ends[group] ?? 0) + (ends[group - 1] ?? 0);
  }
  const owners = new Uint32Array(rows);
  const places = new Uint32Array(rows);
  for (const [owner, { groups }] of buckets.entries()) {
    for (let i = 0; i < groups.length; i++) {
      const group = groups[i] ?? 0;
      const row = ends[group] ?? 0;
      ends[group] = row + 1;
      owners[row] = owner;
      places[row] = i;
    }
  }
  return { ends: ends.subarray(0, groupsEnd), owners, places };
}
