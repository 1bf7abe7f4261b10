import type { DatabaseSync } from 'node:sqlite';
import { grainNumbers } from '../../core/dimensions.ts';
import type { Tile } from '../../core/query-plan.ts';
import { RecentMap } from '../../core/recent-map.ts';
import { limits } from '../../limits.ts';
import { BucketChanges } from './bucket-changes.ts';
import { prepareArrays } from './counted-traces.ts';
import { GroupDirectory } from './group-directory.ts';
import { BucketPacker, bytesOf, packedBlob } from './packed-bucket.ts';
import type { PackedBucket } from './packed-bucket.ts';
import { PackedRun } from './packed-run.ts';
import { groupColumns } from './rollup-values.ts';
import type { RollupPlan } from './rollup-values.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** How much memory may be used. */
export type KeptBounds = Pick<typeof limits, 'keptRollupBytesMax' | 'keptGroupBytesMax'>;

/** Numbers of groups are those of this directory. */
interface KeptBucket {
  directory: GroupDirectory;
  changes: number;
  packed: PackedBucket;
}

/** Buckets that are added up later. */
interface OpenRun {
  run: PackedRun;
  directory: GroupDirectory;
  changes: number;
}

/** A bucket of a tile, with the groups of its rollups. */
export interface TileBucket {
  bucket: number;
  packed: PackedBucket;
  directory: GroupDirectory;
}

/**
 * Reads the rollups of weeks, days and all time, and keeps them in memory in their stored form: a dashboard asks for the same ones again
 * and again, and most of them never change.
 */
export class PackedRollups {
  readonly #bounds: KeptBounds;
  readonly #changes: BucketChanges;
  readonly #readRows;
  readonly #readGroups;
  readonly #buckets: RecentMap<KeptBucket>;
  /** What is added up while no question waits, by its name in `#buckets`. */
  readonly #runs: RecentMap<OpenRun>;
  /** Buckets that take more memory than may be kept. They never become smaller. */
  readonly #tooLarge = new WeakMap<GroupDirectory, Set<string>>();
  /** The groups of a team and set; null if they are too many. The least recently used first. */
  readonly #directories = new Map<
    string,
    { generation: number; directory: GroupDirectory | null }
  >();

  constructor(db: DatabaseSync, bounds: KeptBounds = limits) {
    this.#bounds = bounds;
    this.#buckets = new RecentMap(bounds.keptRollupBytesMax, ({ packed }) => bytesOf(packed));
    this.#runs = new RecentMap(bounds.keptRollupBytesMax, ({ run }) => run.bytes);
    this.#changes = new BucketChanges(db);
    this.#readRows = prepareArrays(
      db,
      `select count(*), max(group_hash), ${packedBlob} from (
         select group_hash, calls, sums, latencies from rollup_rows
         where team_no = ? and generation = ? and set_no = ? and grain = ? and bucket = ? and group_hash > ?
         order by group_hash limit ${chunkRows})`,
    );
    this.#readGroups = prepareArrays(
      db,
      `select hex(g.group_hash), ${groupColumns} from json_each(?) h
       cross join rollup_groups g on g.team_no = ? and g.group_hash = unhex(h.value)`,
    );
  }

  /**
   * The buckets of a tile that have rollups, one after the other, or all of them added up as one if `how.isOneSum`. Ends with null if the
   * set has too many groups, or if a bucket would have to be read and `how.isKeptOnly`.
   */
  *ofTile(
    team: TeamSnapshot,
    plan: RollupPlan,
    tile: Tile,
    how: { isKeptOnly: boolean; isOneSum: boolean },
  ): Generator<TileBucket | null> {
    const directory = this.#directoryOf(team, plan);
    if (!directory) {
      yield null;
      return;
    }
    const allChanges = this.#changes.of(team, plan.set, tile);
    const name = `${nameOf(team.teamNo, plan.set)} ${tile.grain}`;
    const [first = 0] = allChanges.keys();
    const isRun = how.isOneSum && allChanges.size >= runBucketsMin;
    const runName = `${name} ${first} to ${tile.toBucket}`;
    const runChanges = allChanges.values().reduce((sum, changes) => sum + changes, 0);
    if (isRun) {
      const kept = this.#buckets.get(runName);
      if (kept?.directory === directory && kept.changes === runChanges) {
        this.#buckets.keep(runName, kept);
        yield { bucket: first, packed: kept.packed, directory };
        return;
      }
    }
    const bytesMax = this.#bounds.keptRollupBytesMax;
    const run = isRun ? new PackedRun(bytesMax / 4, bytesMax) : null;
    for (const [bucket, changes] of allChanges) {
      let kept = this.#buckets.get(`${name} ${bucket}`);
      if (kept?.directory !== directory || kept.changes !== changes) {
        const isSkipped = how.isKeptOnly || this.#tooLarge.get(directory)?.has(`${name} ${bucket}`);
        const packed = isSkipped ? null : this.#read(team, plan, tile, bucket, directory);
        if (!packed) {
          yield null;
          return;
        }
        kept = { directory, changes, packed };
      }
      this.#buckets.keep(`${name} ${bucket}`, kept);
      run?.add(kept.packed);
      yield { bucket, packed: kept.packed, directory };
    }
    if (run) this.#runs.keep(runName, { run, directory, changes: runChanges });
  }

  /** Adds up the buckets of the last questions that had many, so that the same ones are answered faster next time. */
  *mergeRuns(): Generator<undefined, void> {
    for (const [name, { run, directory, changes }] of this.#runs) {
      this.#runs.forget(name);
      const packed = yield* run.packed();
      if (packed) this.#buckets.keep(name, { directory, changes, packed });
    }
  }

  /** How many buckets of a tile have rollups. */
  countBuckets(team: TeamSnapshot, plan: RollupPlan, tile: Tile): number {
    return this.#changes.of(team, plan.set, tile).size;
  }

  /** Null if there are too many groups, or if their rollups take more memory than may be kept. */
  #read(
    { teamNo, marks }: TeamSnapshot,
    { set }: RollupPlan,
    { grain }: Tile,
    bucket: number,
    directory: GroupDirectory,
  ): PackedBucket | null {
    const packer = new BucketPacker(directory);
    const key = [teamNo, marks.generation, set.number, grain, bucket];
    for (let after: Uint8Array = new Uint8Array(); ;) {
      const [row] = this.#readRows.all(...key, after);
      const [count, last, blob] = row as unknown as [number, Uint8Array, Uint8Array | null];
      if (blob !== null) packer.add(blob);
      if (packer.length > this.#bounds.keptRollupBytesMax) {
        const name = `${nameOf(teamNo, set)} ${grain} ${bucket}`;
        this.#tooLarge.getOrInsertComputed(directory, () => new Set<string>()).add(name);
        return null;
      }
      if (directory.bytes > this.#bounds.keptGroupBytesMax) {
        this.#forgetBuckets(directory);
        this.#directories.set(nameOf(teamNo, set), {
          generation: marks.generation,
          directory: null,
        });
        return null;
      }
      if (count < chunkRows) return packer.packed();
      after = last;
    }
  }

  #directoryOf({ teamNo, marks }: TeamSnapshot, { set }: RollupPlan): GroupDirectory | null {
    const name = nameOf(teamNo, set);
    const { generation } = marks;
    const known = this.#directories.get(name);
    this.#directories.delete(name);
    // The buckets of an old generation are never asked for again.
    if (known && known.generation !== generation) this.#forgetBuckets(known.directory);
    const directory =
      known?.generation === generation
        ? known.directory
        : new GroupDirectory(teamNo, generation, set.number, this.#readGroups);
    this.#directories.set(name, { generation, directory });
    this.#forgetDirectories();
    return directory;
  }

  /** All but the last one, if they take too much memory together. Their buckets are useless without them. */
  #forgetDirectories(): void {
    let bytes = 0;
    for (const { directory } of this.#directories.values()) bytes += directory?.bytes ?? 0;
    for (const [name, { directory }] of this.#directories) {
      const isEnough = this.#directories.size <= directoriesMax;
      if ((bytes <= this.#bounds.keptGroupBytesMax && isEnough) || this.#directories.size === 1)
        return;
      bytes -= directory?.bytes ?? 0;
      this.#directories.delete(name);
      this.#forgetBuckets(directory);
    }
  }

  #forgetBuckets(directory: GroupDirectory | null): void {
    for (const [name, kept] of this.#buckets) {
      if (kept.directory === directory) this.#buckets.forget(name);
    }
  }
}

/** Rollups that come as one blob. */
const chunkRows = 1_024;
const directoriesMax = 1_000;
/** Buckets that are worth adding up for the next question. */
const runBucketsMin = 8;

function nameOf(teamNo: number, set: RollupPlan['set']): string {
  return `${teamNo} ${set.number}`;
}

/** Whether the rollups of a tile can be kept. Those of hours are too many. */
export function isPacked({ grain }: Tile): boolean {
  return grain !== grainNumbers.hour;
}
