import { addToEncoded, encodeMeasures } from '../core/encoded-measures.ts';
import type { EncodedMeasures } from '../core/encoded-measures.ts';
import { groupHash } from '../core/rollup.ts';
import type { Group, Rollup, RollupId } from '../core/rollup.ts';

/** A rollup as every store keeps it. The group's values are in a table of their own, under the hash. */
export interface RollupRow extends Omit<RollupId, 'group'>, EncodedMeasures {
  hash: Uint8Array;
  calls: number;
}

/** What a row holds. */
export type StoredSums = Pick<RollupRow, 'calls' | 'sums' | 'latencies'>;

/** A rollup of a batch, before it is added to the stored one. */
export interface RollupDelta extends Rollup {
  hash: Uint8Array;
}

/** In the order of the primary key, so that upserts visit the index in order and two rollers cannot deadlock. */
export function deltasOf(rollups: readonly Rollup[]): RollupDelta[] {
  const hashes = new Map<Group, Uint8Array>();
  const hashOf = (rollup: Rollup): Uint8Array => {
    let hash = hashes.get(rollup.group);
    if (!hash) hashes.set(rollup.group, (hash = groupHash(rollup)));
    return hash;
  };
  return rollups
    .map((rollup) => ({ ...rollup, hash: hashOf(rollup) }))
    .sort(
      (a, b) =>
        a.set - b.set || a.grain - b.grain || a.bucket - b.bucket || Buffer.compare(a.hash, b.hash),
    );
}

/** The row after a batch: the stored sums, if there are any, plus those of the batch. */
export function addedTo(
  stored: StoredSums | undefined,
  { set, grain, bucket, hash, measures }: RollupDelta,
): RollupRow {
  const calls = measures.calls + (stored?.calls ?? 0);
  const encoded = stored ? addToEncoded(stored, measures) : encodeMeasures(measures);
  return { set, grain, bucket, hash, calls, ...encoded };
}
