import type { Tile } from '../../core/query-plan.ts';
import { eventTime } from '../../query/sums-sql.ts';
import type { FreshRows, SumsDialect, SumsQuestion } from '../../query/sums-sql.ts';
import { seqMax, teamOfRowId } from './row-id.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

type Bound = string | number;

/** The statement of one question. The snapshot of the team is known, so that parts without rows are left out. */
export class SqliteSums implements SumsDialect {
  readonly values: Bound[] = [];
  readonly joinGroups = 'cross join rollup_groups g on g.no = r.group_no';
  readonly groupColumn = 'group_no';
  readonly hasArrays = false;
  readonly #team: TeamSnapshot;
  /** The groups of the set that match the filter; null if they are all, or too many. */
  readonly #groupNos: readonly number[] | null;

  constructor(team: TeamSnapshot, groupNos: readonly number[] | null) {
    this.#team = team;
    this.#groupNos = groupNos;
  }

  bind(value: unknown): string {
    const bound = Array.isArray(value) ? JSON.stringify(value) : (value as Bound);
    // A position is used again for the same value.
    const known = this.values.indexOf(bound);
    return `?${known >= 0 ? known + 1 : this.values.push(bound)}`;
  }

  sum(expression: string): string {
    return `sum(${expression})`;
  }

  isAmong(column: string, texts: string): string {
    return `${column} in (select value from json_each(${texts}))`;
  }

  /**
   * If few groups match the filter, they are looked up in each bucket that exists; each bucket is found by one step in the index.
   */
  rollupRows({ set }: SumsQuestion, { grain, fromBucket, toBucket }: Tile): string {
    const { teamNo, marks } = this.#team;
    const inGrain = (prefix: string): string =>
      Object.entries({
        team_no: teamNo,
        generation: marks.generation,
        set_no: set.number,
        grain,
      })
        .map(([column, value]) => `${prefix}${column} = ${this.bind(value)}`)
        .join(' and ');
    const [from, to] = [this.bind(fromBucket), this.bind(toBucket)];
    if (this.#groupNos === null) {
      return `rollups r where ${inGrain('r.')} and r.bucket >= ${from} and r.bucket < ${to}`;
    }
    return `(
      with recursive buckets (bucket) as (
        select min(bucket) from rollups where ${inGrain('')} and bucket >= ${from} and bucket < ${to}
        union all
        select (select min(bucket) from rollups where ${inGrain('')} and bucket > b.bucket and bucket < ${to})
        from buckets b where b.bucket is not null)
      select r.* from buckets b cross join json_each(${this.bind(this.#groupNos)}) n cross join rollups r
        on ${inGrain('r.')} and r.bucket = b.bucket and r.group_no = n.value) r where true`;
  }

  freshRows({ query, covered, edges }: SumsQuestion): readonly FreshRows[] {
    const { teamNo, lastSeq, changeNo, lastChangeNo, marks } = this.#team;
    const { seq: rolledSeq } = marks;
    const key = (no: number): string => `((${this.bind(teamNo)} << 40) | ${this.bind(no)})`;
    const within = (range: SumsQuestion['covered'], time = eventTime): string =>
      range === null
        ? ''
        : ` and ${time} >= ${this.bind(range.fromUs)} and ${time} < ${this.bind(range.toUs)}`;
    const rows: FreshRows[] = [];
    if (lastSeq > rolledSeq) {
      const from = `traces where key between ${key(rolledSeq + 1)} and ${key(seqMax)}`;
      // The plus keeps SQLite from reading the traces of a long range through the index on times.
      rows.push({ weight: '1', from: from + within(query.range, `+${eventTime}`) });
    }
    if (lastChangeNo > changeNo) {
      const from = `trace_changes where key between ${key(changeNo + 1)} and ${key(seqMax)}`;
      const ofRolled = ` and seq <= ${this.bind(rolledSeq)}`;
      rows.push({ weight: 'weight', from: from + ofRolled + within(covered) });
    }
    for (const edge of edges) {
      const from = `traces indexed by traces_by_event_time where ${teamOfRowId} = ${this.bind(teamNo)}`;
      rows.push({ weight: '1', from: `${from}${within(edge)} and +key <= ${key(rolledSeq)}` });
    }
    return rows;
  }
}
