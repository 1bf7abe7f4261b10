import { dimensionFields } from '../../core/dimensions.ts';
import { columnOf, narrowNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldKind, FieldName } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import { addedColumns } from '../../query/sums-sql.ts';
import { addedColumns as addedToTraces, narrowColumns } from '../trace-rows.ts';

/** The statements on marks, changes and rollups. For the rules see `statements.ts`; questions are built in `sums-dialect.ts`. */
const marks = 'generation, time_zone, seq, change_no';

export const activeMarks = 'from roll_marks where team_id = $1 and is_active';

const textKinds: ReadonlySet<FieldKind> = new Set(['label', 'source']);

/** The columns that sums are made of, and those of the given labels. */
export function countedColumns(labels: readonly FieldName[]): string[] {
  const fields = narrowNames.filter(
    (name) => !textKinds.has(traceFields[name].kind) || labels.includes(name),
  );
  return ['created_at_us', ...fields.map(columnOf)];
}

const rowKey = 'set_no, grain, bucket, group_hash';

export const ofMarks = {
  addMarks: `
    insert into roll_marks (team_id, generation, time_zone, is_active, seq, change_no)
    values ($1, $2, $3, $4, $5, $6) on conflict (team_id, generation) do nothing`,

  readMarks: `select ${marks} ${activeMarks}`,

  lockMarks: `select ${marks} ${activeMarks} for update`,

  /** Nothing if another process is rolling up the team. */
  lockFreeMarks: `select ${marks} ${activeMarks} for update skip locked`,

  lockMarksOf: `select ${marks}, is_active from roll_marks where team_id = $1 and generation = $2 for update`,

  /** All generations, in a fixed order, so that two transactions cannot deadlock. */
  lockAllMarks: `select 1 from roll_marks where team_id = $1 order by generation for update`,

  readAllMarks: `select ${marks}, is_active from roll_marks where team_id = $1 order by generation`,

  /** Rows of an abandoned generation may still exist, so its number is not used again. */
  readNewestGeneration: `
    select max(generation) as generation from (
      select max(generation) as generation from roll_marks where team_id = $1
      union all select max(generation) from rollups where team_id = $1) as newest`,

  move: `update roll_marks set seq = $3, change_no = $4 where team_id = $1 and generation = $2`,

  deactivate: `update roll_marks set is_active = false where team_id = $1 and is_active`,

  activate: `update roll_marks set is_active = true where team_id = $1 and generation = $2`,

  removeMarks: `delete from roll_marks where team_id = $1 and generation = $2 and not is_active`,
};

const changedColumns = ['created_at_us', ...narrowColumns, addedToTraces].join(', ');

/** One entry for each of the traces with the numbers $3; $2 is the number before the first entry, and $5 the place of an entry in its pair. */
const logChanges = (weight: 1 | -1): string => `
    insert into trace_changes (team_id, change_no, seq, weight, changed_at_us, ${changedColumns})
    select t.team_id, $2::bigint + 2 * u.at ${weight < 0 ? '- 1' : ''}, t.seq, ${weight}, $4::bigint,
      ${changedColumns
        .split(', ')
        .map((name) => `t.${name}`)
        .join(', ')}
    from traces t, unnest($3::bigint[]) with ordinality as u(seq, at)
    where t.team_id = $1 and t.seq = u.seq`;

export const ofChanges = {
  addCounter: `
    insert into change_counters (team_id, last_change_no) values ($1, 0) on conflict (team_id) do nothing`,

  /** Locked until the commit, so that numbers become visible in their order. */
  lockCounter: `select last_change_no from change_counters where team_id = $1 for update`,

  readCounter: `select last_change_no from change_counters where team_id = $1`,

  moveCounter: `update change_counters set last_change_no = $2 where team_id = $1`,

  /** Removes the oldest entries that every generation contains. They are kept for a while, since a crash may take marks back to older ones. */
  prune: `
    delete from trace_changes where team_id = $1 and change_no in (
      select change_no from trace_changes
      where team_id = $1 and change_no <= (select min(change_no) from roll_marks where team_id = $1)
      order by change_no limit $3) and changed_at_us < $2`,

  logBefore: logChanges(-1),

  logAfter: logChanges(1),

  /** Changes of traces that are rolled up already. */
  readNext: `
    select weight, ${countedColumns(dimensionFields).join(', ')} from trace_changes
    where team_id = $1 and change_no > $2 and change_no <= $3 and seq <= $4`,

  /** The values of traces before the first change after a mark: the earliest comes last. */
  readPending: `
    select seq, ${['created_at_us', ...narrowColumns].join(', ')} from trace_changes
    where team_id = $1 and change_no > $2 and seq <= $3 and weight < 0 order by change_no desc`,
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
  /** With the number of the last change that their values contain. */
  readNextTraces: `
    select ${countedColumns(dimensionFields).join(', ')},
      (select n.last_change_no from change_counters n where n.team_id = $1) as last_change_no
    from traces
    where team_id = $1 and seq > $2 and seq <= $3 order by seq`,

  // A subquery for each key: as a plain join, PostgreSQL may read all rollups of the team.
  readLatencies: `
    select k.at, found.latencies
    from unnest($3::smallint[], $4::smallint[], $5::bigint[], $6::uuid[]) with ordinality
      as k(${rowKey}, at), lateral (
      select r.latencies from rollups r
      where r.team_id = $1 and r.generation = $2 and r.set_no = k.set_no and r.grain = k.grain
        and r.bucket = k.bucket and r.group_hash = k.group_hash
      limit 1) as found`,

  // All histograms are one parameter, and each row has its range in it.
  addRows: `
    insert into rollups (team_id, generation, ${rowKey}, ${addedColumns.join(', ')}, latencies)
    select c.team_id, $2, u.set_no, u.grain, u.bucket, u.group_hash, ${addedColumns.map((name) => `u.${name}`).join(', ')},
      substring($3::bytea from u.at for u.bytes)
    from team_counters c,
      unnest($4::smallint[], $5::smallint[], $6::bigint[], $7::uuid[], $8::integer[], $9::integer[], ${addedColumns.map((_, i) => `$${i + 10}::bigint[]`).join(', ')})
      as u(${rowKey}, at, bytes, ${addedColumns.join(', ')})
    where c.team_id = $1
    on conflict (team_id, generation, ${rowKey}) do update set
      ${addedColumns.map((name) => `${name} = rollups.${name} + excluded.${name}`).join(', ')},
      latencies = excluded.latencies`,

  removeEmpty: `
    delete from rollups r using unnest($3::smallint[], $4::smallint[], $5::bigint[], $6::uuid[]) as k(${rowKey})
    where r.team_id = $1 and r.generation = $2 and r.set_no = k.set_no and r.grain = k.grain
      and r.bucket = k.bucket and r.group_hash = k.group_hash and r.calls = 0`,

  addGroups: `${insertGroups} do nothing`,

  /** For a rebuild, which also corrects groups whose values were damaged. */
  replaceGroups: `${insertGroups} do update set ${['set_no', 'is_error', ...dimensionFields]
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`,

  /** The first row that is not among the next ones to remove. */
  readKeyAfter: `
    select ${rowKey} from rollups where team_id = $1 and generation = $2
    order by ${rowKey} offset ${limits.rollRowsMax} limit 1`,

  // A range of the primary key. As a list of keys, PostgreSQL may compare every row with each of them.
  removeRowsBefore: `
    delete from rollups where team_id = $1 and generation = $2 and (${rowKey}) < ($3, $4, $5, $6)`,

  removeRows: `delete from rollups where team_id = $1 and generation = $2`,

  auditRows: `
    select r.set_no, r.grain, r.bucket, r.group_hash, ${addedColumns.map((name) => `r.${name}`).join(', ')}, r.latencies, g.is_error, ${dimensionFields.map((name) => `g.${name}`).join(', ')}
    from rollups r left join rollup_groups g on g.team_id = $1 and g.group_hash = r.group_hash
    where r.team_id = $1 and r.generation = $2
      and (r.set_no, r.grain, r.bucket, r.group_hash) > ($3, $4, $5, $6)
    order by r.set_no, r.grain, r.bucket, r.group_hash limit ${limits.auditChunkRows}`,
};
