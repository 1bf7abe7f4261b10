import { dimensionFields } from '../../core/dimensions.ts';
import type { RollSpeed } from '../../core/dimensions.ts';
import { columnOf, narrowNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldKind, FieldName } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';

/** The statements on marks and rollups. For the rules see `statements.ts`; queries are built in `tally-statements.ts`. */
const markColumns: Readonly<Record<RollSpeed, string>> = { hot: 'hot_seq', wide: 'wide_seq' };

const marks = 'generation, time_zone, hot_seq, wide_seq';

export const activeMarks = 'from team_marks where team_id = $1 and is_active';

const textKinds: ReadonlySet<FieldKind> = new Set(['label', 'source']);

/** The columns that sums are made of, and those of the given labels. */
export function countedColumns(labels: readonly FieldName[]): string[] {
  const fields = narrowNames.filter(
    (name) => !textKinds.has(traceFields[name].kind) || labels.includes(name),
  );
  return ['created_at_us', ...fields.map(columnOf)];
}

/** The traces after a mark. Without the second bound PostgreSQL may plan a scan over all teams. */
export function tailOf(speed: RollSpeed, columns: readonly string[]): string {
  return `
    select ${columns.join(', ')} from traces
    where team_id = $1 and seq > (select ${markColumns[speed]} ${activeMarks})
      and seq <= (select last_seq from team_counters where team_id = $1)`;
}

const rowKey = 'set_no, grain, bucket, group_hash';

export const ofMarks = {
  addMarks: `
    insert into team_marks (team_id, generation, time_zone, is_active, hot_seq, wide_seq)
    values ($1, $2, $3, $4, $5, $5) on conflict (team_id, generation) do nothing`,

  readMarks: `select ${marks} ${activeMarks}`,

  /** How many traces are not rolled up yet, by speed. */
  readTails: `
    select c.last_seq - m.hot_seq as hot, c.last_seq - m.wide_seq as wide
    from team_marks m join team_counters c on c.team_id = $1
    where m.team_id = $1 and m.is_active`,

  lockMarks: `select ${marks} ${activeMarks} for update`,

  /** Nothing if another process is rolling up the team. */
  lockFreeMarks: `select ${marks} ${activeMarks} for update skip locked`,

  lockMarksOf: `select ${marks}, is_active from team_marks where team_id = $1 and generation = $2 for update`,

  /** All generations, in a fixed order, so that two transactions cannot deadlock. */
  lockAllMarks: `select 1 from team_marks where team_id = $1 order by generation for update`,

  readAllMarks: `select ${marks}, is_active from team_marks where team_id = $1 order by generation`,

  /** Rows of an abandoned generation may still exist, so its number is not used again. */
  readNewestGeneration: `
    select max(generation) as generation from (
      select max(generation) as generation from team_marks where team_id = $1
      union all select max(generation) from rollup_rows where team_id = $1) as newest`,

  setHotSeq: `update team_marks set hot_seq = $3 where team_id = $1 and generation = $2`,

  setWideSeq: `update team_marks set wide_seq = $3 where team_id = $1 and generation = $2`,

  deactivate: `update team_marks set is_active = false where team_id = $1 and is_active`,

  activate: `update team_marks set is_active = true where team_id = $1 and generation = $2`,

  removeMarks: `delete from team_marks where team_id = $1 and generation = $2 and not is_active`,
};

const insertGroups = `
    insert into rollup_groups (team_id, group_hash, set_no, is_error, ${dimensionFields.join(', ')})
    select c.team_id, u.group_hash, u.set_no, u.is_error, ${dimensionFields.map((name) => `u.${name}`).join(', ')}
    from team_counters c,
      unnest($2::uuid[], $3::smallint[], $4::boolean[], ${dimensionFields.map((_, i) => `$${i + 5}::text[]`).join(', ')})
      as u(group_hash, set_no, is_error, ${dimensionFields.join(', ')})
    where c.team_id = $1
    on conflict (team_id, group_hash)`;

export const ofRollups = {
  readNextTraces: `
    select ${countedColumns(dimensionFields).join(', ')} from traces
    where team_id = $1 and seq > $2 and seq <= $3 order by seq`,

  // A subquery for each key: as a plain join, PostgreSQL may read all rollups of the team.
  readRows: `
    select k.at, found.calls, found.sums, found.latencies
    from unnest($3::smallint[], $4::smallint[], $5::bigint[], $6::uuid[]) with ordinality
      as k(${rowKey}, at), lateral (
      select r.calls, r.sums, r.latencies from rollup_rows r
      where r.team_id = $1 and r.generation = $2 and r.set_no = k.set_no and r.grain = k.grain
        and r.bucket = k.bucket and r.group_hash = k.group_hash
      limit 1) as found`,

  writeRows: `
    insert into rollup_rows (team_id, generation, ${rowKey}, calls, sums, latencies)
    select c.team_id, $2, u.set_no, u.grain, u.bucket, u.group_hash, u.calls,
      substring($3::bytea from u.at for u.sums), substring($3::bytea from u.at + u.sums for u.latencies)
    from team_counters c,
      unnest($4::smallint[], $5::smallint[], $6::bigint[], $7::uuid[], $8::bigint[], $9::integer[], $10::integer[], $11::integer[])
      as u(${rowKey}, calls, at, sums, latencies)
    where c.team_id = $1
    on conflict (team_id, generation, ${rowKey}) do update
      set calls = excluded.calls, sums = excluded.sums, latencies = excluded.latencies`,

  addGroups: `${insertGroups} do nothing`,

  /** For a rebuild, which also corrects groups whose values were damaged. */
  replaceGroups: `${insertGroups} do update set ${['set_no', 'is_error', ...dimensionFields]
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`,

  /** The first row that is not among the next ones to remove. */
  readKeyAfter: `
    select ${rowKey} from rollup_rows where team_id = $1 and generation = $2
    order by ${rowKey} offset ${limits.rollRowsMax} limit 1`,

  // A range of the primary key. As a list of keys, PostgreSQL may compare every row with each of them.
  removeRowsBefore: `
    delete from rollup_rows where team_id = $1 and generation = $2 and (${rowKey}) < ($3, $4, $5, $6)`,

  removeRows: `delete from rollup_rows where team_id = $1 and generation = $2`,

  auditRows: `
    select r.set_no, r.grain, r.bucket, r.group_hash, r.calls, r.sums, r.latencies, g.is_error, ${dimensionFields.map((name) => `g.${name}`).join(', ')}
    from rollup_rows r left join rollup_groups g on g.team_id = $1 and g.group_hash = r.group_hash
    where r.team_id = $1 and r.generation = $2
      and (r.set_no, r.grain, r.bucket, r.group_hash) > ($3, $4, $5, $6)
    order by r.set_no, r.grain, r.bucket, r.group_hash limit ${limits.auditChunkRows}`,
};
