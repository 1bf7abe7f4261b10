import type { DatabaseSync } from 'node:sqlite';
import { daysPerWeek } from '../../core/calendar.ts';
import { grainNumbers } from '../../core/dimensions.ts';
import { MeasuresSum } from '../../core/measures-sum.ts';
import type { Tile } from '../../core/query-plan.ts';
import { RecentMap } from '../../core/recent-map.ts';
import type { Group } from '../../core/rollup.ts';
import type { KeptRollup } from '../../core/tally-sheet.ts';
import { limits } from '../../limits.ts';
import { BucketChanges } from './bucket-changes.ts';
import { prepareArrays } from './counted-traces.ts';
import { groupOfValues, inTile, rollupColumns, rollupTables } from './rollup-values.ts';
import type { RollupPlan, RollupValues } from './rollup-values.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** The rollups of one day or week. They are right as long as the number of changes is the same. */
interface KeptBucket {
  generation: number;
  changes: number;
  rollups: readonly KeptRollup[];
  bytes: number;
}

/**
 * Keeps the decoded sums of days and weeks in memory: a dashboard asks for the same ones again and again, and most of them never change.
 * `rollup_days` says which have changed, in the snapshot of the question. Histograms are not kept.
 */
export class KeptRollups {
  readonly #changes: BucketChanges;
  readonly #countRows;
  readonly #readRows;
  readonly #buckets = new RecentMap<KeptBucket>(limits.keptRollupBytesMax, ({ bytes }) => bytes);
  /** The same object for all buckets of a group, so that a question looks at its values once. */
  #groups = new Map<string, Group>();

  constructor(db: DatabaseSync) {
    this.#changes = new BucketChanges(db);
    this.#countRows = openRowCount(db);
    const columns = rollupColumns.replace('r.latencies', 'null');
    this.#readRows = prepareArrays(db, `select ${columns} from ${rollupTables()} where ${inTile}`);
  }

  /** The rollups of a tile of days or weeks. Null if more than `rowsMax` would have to be read. */
  ofTile(
    team: TeamSnapshot,
    plan: RollupPlan,
    tile: Tile,
    rowsMax: number,
  ): { rollups: readonly (readonly KeptRollup[])[]; read: number } | null {
    const { generation } = team.marks;
    const found: (readonly KeptRollup[])[] = [];
    const changed = new Map<number, number>();
    for (const [bucket, changes] of this.#changes.of(team, plan.set, tile)) {
      const name = nameOf(team, plan, tile, bucket);
      const kept = this.#buckets.get(name);
      if (kept?.generation === generation && kept.changes === changes) {
        this.#buckets.keep(name, kept);
        found.push(kept.rollups);
      } else {
        changed.set(bucket, changes);
      }
    }
    let read = 0;
    for (const range of rangesOf([...changed.keys()], tile)) {
      read += this.#countRows(team, plan, range, rowsMax - read);
      if (read > rowsMax) return null;
      const rows = this.#read(team, plan, range);
      for (const [bucket, rollups] of Map.groupBy(rows, (rollup) => rollup.bucket)) {
        found.push(rollups);
        const bytes = rollups.reduce((sum, { group }) => sum + bytesOf(group), bucketBytes);
        const changes = changed.get(bucket) ?? 0;
        this.#buckets.keep(nameOf(team, plan, tile, bucket), {
          generation,
          changes,
          rollups,
          bytes,
        });
      }
    }
    return { rollups: found, read };
  }

  #read(
    { teamNo, marks }: TeamSnapshot,
    { set }: RollupPlan,
    { grain, fromBucket, toBucket }: Tile,
  ): KeptRollup[] {
    const key = [teamNo, marks.generation, set.number, grain, fromBucket, toBucket];
    const rows = this.#readRows.all(...key) as unknown as RollupValues[];
    return rows.map((row) => {
      const [, , bucket, calls, sums, , isError] = row;
      const sum = new MeasuresSum(false);
      sum.addEncoded({ calls, isError: isError === 1, sums, latencies: null });
      return { grain, bucket, group: this.#groupOf(row), sum };
    });
  }

  #groupOf(row: RollupValues): Group {
    const [set, , , , , , isError, ...values] = row;
    const name = [set, isError, ...values.map((value) => value ?? '\u0001')].join('\u0000');
    let group = this.#groups.get(name);
    if (!group) {
      if (this.#groups.size >= limits.keptGroupsMax) this.#groups.clear();
      group = groupOfValues(row);
      this.#groups.set(name, group);
    }
    return group;
  }
}

/** Returns a function that counts the rollups of a tile, but not further than one more than `rowsMax`. */
export function openRowCount(
  db: DatabaseSync,
): (team: TeamSnapshot, plan: RollupPlan, tile: Tile, rowsMax: number) => number {
  const count = prepareArrays(
    db,
    `select count(*) from (select 1 from rollup_rows r where ${inTile} limit ?)`,
  );
  return ({ teamNo, marks }, { set }, { grain, fromBucket, toBucket }, rowsMax) => {
    const key = [teamNo, marks.generation, set.number, grain, fromBucket, toBucket];
    return count.all(...key, rowsMax + 1)[0]?.[0] as number;
  };
}

/** Whether the rollups of a tile can be kept: those of hours are too many, and those over all time change with every roll. */
export function isKept({ grain }: Tile): boolean {
  return grain === grainNumbers.day || grain === grainNumbers.week;
}

function nameOf({ teamNo }: TeamSnapshot, { set }: RollupPlan, { grain }: Tile, bucket: number) {
  return `${teamNo} ${set.number} ${grain} ${bucket}`;
}

/** Tiles of consecutive buckets, which are read together. */
function rangesOf(buckets: readonly number[], { grain }: Tile): Tile[] {
  const width = grain === grainNumbers.week ? daysPerWeek : 1;
  const ranges: Tile[] = [];
  for (const bucket of buckets) {
    const last = ranges.at(-1);
    if (last?.toBucket === bucket) last.toBucket = bucket + width;
    else ranges.push({ grain, fromBucket: bucket, toBucket: bucket + width });
  }
  return ranges;
}

/** What an entry and its sums take, and the values of its group. */
function bytesOf(group: KeptRollup['group']): number {
  let chars = 0;
  for (const value of Object.values(group)) chars += value?.length ?? 0;
  return rollupBytes + 2 * chars;
}

const rollupBytes = 600;
const bucketBytes = 200;
