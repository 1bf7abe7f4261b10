import type { DatabaseSync } from 'node:sqlite';
import { grainNumbers } from '../../core/dimensions.ts';
import type { Tile } from '../../core/query-plan.ts';
import { limits } from '../../limits.ts';
import { BucketChanges } from './bucket-changes.ts';
import { prepareArrays } from './counted-traces.ts';
import { GroupDirectory } from './group-directory.ts';
import { BucketPacker, bytesOf, packedText } from './packed-bucket.ts';
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
  /** The least recently used first. */
  readonly #buckets = new Map<string, KeptBucket>();
  #bytes = 0;
  /** The groups of a team and set; null if they are too many. The least recently used first. */
  readonly #directories = new Map<
    string,
    { generation: number; directory: GroupDirectory | null }
  >();

  constructor(db: DatabaseSync, bounds: KeptBounds = limits) {
    this.#bounds = bounds;
    this.#changes = new BucketChanges(db);
    this.#readRows = prepareArrays(
      db,
      `select count(*), hex(max(group_hash)), ${packedText} from (
         select group_hash, calls, sums, latencies from rollup_rows
         where team_no = ? and generation = ? and set_no = ? and grain = ? and bucket = ? and group_hash > unhex(?)
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
        this.#keep(runName, kept);
        yield { bucket: first, packed: kept.packed, directory };
        return;
      }
    }
    const run = isRun ? new PackedRun(this.#bounds.keptRollupBytesMax / 4) : null;
    for (const [bucket, changes] of allChanges) {
      let kept = this.#buckets.get(`${name} ${bucket}`);
      if (kept?.directory !== directory || kept.changes !== changes) {
        const packed = how.isKeptOnly ? null : this.#read(team, plan, tile, bucket, directory);
        if (!packed) {
          yield null;
          return;
        }
        kept = { directory, changes, packed };
      }
      this.#keep(`${name} ${bucket}`, kept);
      run?.add(kept.packed);
      yield { bucket, packed: kept.packed, directory };
    }
    const packed = run?.packed();
    if (packed) this.#keep(runName, { directory, changes: runChanges, packed });
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
    for (let after = ''; ;) {
      const [row] = this.#readRows.all(...key, after);
      const [count, last, text] = row as unknown as [number, string, string | null];
      if (text !== null) packer.add(text);
      if (packer.length > this.#bounds.keptRollupBytesMax) return null;
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
      if (kept.directory === directory) this.#forget(name);
    }
  }

  #keep(name: string, kept: KeptBucket): void {
    this.#forget(name);
    this.#buckets.set(name, kept);
    this.#bytes += bytesOf(kept.packed);
    for (const oldest of this.#buckets.keys()) {
      if (this.#bytes <= this.#bounds.keptRollupBytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    const kept = this.#buckets.get(name);
    if (!kept) return;
    this.#bytes -= bytesOf(kept.packed);
    this.#buckets.delete(name);
  }
}

/** Rollups that come as one text. */
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
