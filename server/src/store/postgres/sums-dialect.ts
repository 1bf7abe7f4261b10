import type { Tile } from '../../core/query-plan.ts';
import { uuidText } from '../../core/uuid.ts';
import { eventTime, filterSql } from '../../query/sums-sql.ts';
import type { BoundType, FreshRows, SumsDialect, SumsQuestion } from '../../query/sums-sql.ts';
import { groupHashes } from '../group-hashes.ts';

/**
 * One statement about the sums of a team, which is `$1`. Its mark is read by the statement itself (`m`), so that everything comes from one
 * snapshot in one round trip.
 */
export class PostgresSums implements SumsDialect {
  readonly values: unknown[];
  // As a plain join, a plan that was made while there were few groups compares each rollup with every group.
  readonly joinGroups = `
    cross join lateral (
      select * from rollup_groups where team_id = $1 and group_hash = r.group_hash offset 0) as g`;
  readonly groupColumn = 'group_hash';
  readonly hasArrays = true;

  constructor(teamId: string) {
    this.values = [teamId];
  }

  /** The mark, and how many traces there are. */
  static readonly mark = `
    m as materialized (
      select k.time_zone, k.generation, k.seq, k.change_no, coalesce(c.last_seq, 0) as last_seq
      from roll_marks k left join team_counters c on c.team_id = k.team_id and c.team_id = $1
      where k.team_id = $1 and k.is_active)`;

  /** The same as `k`. Its sums are empty if more than `tailMax` traces come after the mark. */
  static markOfTail(tailMax: number): string {
    return `
    k as materialized (
      with ${PostgresSums.mark} select m.*, last_seq - seq > ${tailMax} as is_behind from m),
    m as materialized (select * from k where not is_behind)`;
  }

  bind(value: unknown, type: BoundType): string {
    this.values.push(value);
    return `$${this.values.length}::${type === 'texts' ? 'text[]' : 'bigint'}`;
  }

  sum(expression: string): string {
    return `sum(${expression})::bigint`;
  }

  isAmong(column: string, texts: string): string {
    return `${column} = any(${texts})`;
  }

  /** If a filter names values, its groups are looked up in each bucket that exists. */
  rollupRows({ query, set }: SumsQuestion, { grain, fromBucket, toBucket }: Tile): string {
    const inGrain = (prefix: string): string =>
      `${prefix}team_id = $1 and ${prefix}generation = (select generation from m) and ${prefix}set_no = ${set.number} and ${prefix}grain = ${grain}`;
    const [from, to] = [this.bind(fromBucket, 'integer'), this.bind(toBucket, 'integer')];
    const inTile = (prefix: string): string =>
      `${inGrain(prefix)} and ${prefix}bucket >= ${from} and ${prefix}bucket < ${to}`;
    const isNarrow = Object.entries(query.filter).some(
      ([field, accepted]) => field !== 'status' && accepted !== 'set',
    );
    if (!isNarrow) return `rollups r where ${inTile('r.')}`;
    return `(
      with recursive buckets (bucket) as (
        (select min(bucket) from rollups where ${inTile('')})
        union all
        select (select min(bucket) from rollups where ${inGrain('')} and bucket > b.bucket and bucket < ${to})
        from buckets b where b.bucket is not null),
      named as materialized (${this.#matchingGroups(query, set)})
      select r.* from buckets b, named n, lateral (
        select * from rollups r where ${inGrain('r.')} and r.bucket = b.bucket and r.group_hash = n.group_hash
        offset 0) as r) as r where true`;
  }

  #matchingGroups(query: SumsQuestion['query'], set: SumsQuestion['set']): string {
    const hashes = groupHashes(query.filter, set);
    if (!hashes) {
      return `select g.group_hash from rollup_groups g where g.team_id = $1 and g.set_no = ${set.number}${filterSql(this, query.filter, 'g.')}`;
    }
    this.values.push(hashes.map(uuidText));
    return `select unnest($${this.values.length}::uuid[]) as group_hash`;
  }

  /** Without the second bound PostgreSQL may plan a scan over all teams. */
  freshRows({ query, covered, edges }: SumsQuestion): readonly FreshRows[] {
    const within = (range: SumsQuestion['covered']): string =>
      range === null
        ? ''
        : ` and ${eventTime} >= ${this.bind(range.fromUs, 'integer')} and ${eventTime} < ${this.bind(range.toUs, 'integer')}`;
    return [
      {
        weight: '1',
        from: `traces where team_id = $1 and seq > (select seq from m) and seq <= (select last_seq from m)${within(query.range)}`,
      },
      {
        weight: 'weight',
        from: `trace_changes where team_id = $1 and change_no > (select change_no from m) and seq <= (select seq from m)${within(covered)}`,
      },
      ...edges.map((edge): FreshRows => ({
        weight: '1',
        from: `traces where team_id = $1 and seq <= (select seq from m)${within(edge)}`,
      })),
    ];
  }
}
