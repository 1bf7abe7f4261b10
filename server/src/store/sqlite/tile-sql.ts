import type { TallyQuery } from '../../core/query.ts';
import type { Tile } from '../../core/query-plan.ts';
import { limits } from '../../limits.ts';
import { groupHashes } from '../group-hashes.ts';
import { filterSql } from './filter-sql.ts';
import { inTile, rollupTables } from './rollup-values.ts';
import type { RollupPlan } from './rollup-values.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

export function tileKey({ teamNo, marks }: TeamSnapshot, { set }: RollupPlan, tile: Tile) {
  return [teamNo, marks.generation, set.number, tile.grain, tile.fromBucket, tile.toBucket];
}

/** How the rollups of a query are read from one tile after the other. */
export interface TileReads {
  /** The statement that reads these columns of `r` and `g`. */
  sqlOf(columns: string): string;
  /** The parameters after the key of the tile. */
  values: readonly (string | number)[];
  /** Whether the filter names the groups, so that each is looked up. */
  areNamed: boolean;
  /** Whether they are few, however many rollups the tiles have. */
  areFew: boolean;
}

/** If the filter names the groups, they are looked up in each bucket of the tile, instead of reading the rollups of all groups. */
export function tileReads({ filter }: TallyQuery, { set }: RollupPlan): TileReads {
  const hashes = groupHashes(filter, set);
  if (hashes) return namedReads(hashes.map((hash) => hash.toString('hex')));
  const { text, values } = filterSql(filter, 'g.');
  return {
    sqlOf: (columns) => `select ${columns} from ${rollupTables()} where ${inTile}${text}`,
    values,
    areNamed: false,
    areFew: false,
  };
}

/** By the hashes of the groups, in hexadecimal digits. */
export function namedReads(hashes: readonly string[]): TileReads {
  return {
    sqlOf: (columns) => `${everyBucket} select ${columns} from ${lookedUp}`,
    values: [JSON.stringify(hashes)],
    areNamed: true,
    areFew: hashes.length <= limits.fewGroupsMax,
  };
}

const inSet = 'team_no = ?1 and generation = ?2 and set_no = ?3 and grain = ?4';

/** The buckets that exist in a tile: each is found by one step in the index. */
const everyBucket = `
  with recursive buckets(bucket) as (
    select (select min(bucket) from rollup_rows where ${inSet} and bucket >= ?5 and bucket < ?6)
    union all
    select (select min(bucket) from rollup_rows where ${inSet} and bucket > b.bucket and bucket < ?6)
    from buckets b where b.bucket is not null)`;

const lookedUp = `
  buckets b cross join json_each(?7) h
  cross join rollup_rows r on r.team_no = ?1 and r.generation = ?2 and r.set_no = ?3 and r.grain = ?4
    and r.bucket = b.bucket and r.group_hash = unhex(h.value)
  join rollup_groups g on g.team_no = r.team_no and g.group_hash = r.group_hash`;
