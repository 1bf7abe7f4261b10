import { inOrder } from '../core/latency-blob.ts';
import type { BucketCount } from '../core/latency-blob.ts';
import { groupHash } from '../core/rollup.ts';
import type { Group, Rollup } from '../core/rollup.ts';

/** A rollup of a batch, before it is added to the stored one. */
export interface RollupDelta extends Rollup {
  hash: Uint8Array;
  latencies: readonly BucketCount[];
}

/** In the order of the primary key, so that upserts visit the index in order and two rollers cannot deadlock. */
export function deltasOf(rollups: readonly Rollup[]): RollupDelta[] {
  const hashes = new Map<Group, Uint8Array>();
  const orders = new Map<Rollup['measures'], readonly BucketCount[]>();
  return rollups
    .map((rollup) => {
      const { group, measures } = rollup;
      const hash = known(hashes, group, () => groupHash(rollup));
      const latencies = known(orders, measures, () => inOrder(measures.latencies));
      return { ...rollup, hash, latencies };
    })
    .sort(
      (a, b) =>
        a.set - b.set || a.grain - b.grain || a.bucket - b.bucket || Buffer.compare(a.hash, b.hash),
    );
}

/** Several grains share a group, and often its measures. */
function known<K, V>(values: Map<K, V>, key: K, make: () => V): V {
  let value = values.get(key);
  if (value === undefined) values.set(key, (value = make()));
  return value;
}
