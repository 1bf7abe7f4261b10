import { dimensionFields } from '../../core/dimensions.ts';
import { hasMetadataFilter } from '../../core/query.ts';
import type { QueryField, SearchCriteria, TallyQuery, TraceCriteria } from '../../core/query.ts';
import type { QueryPlan } from '../../core/query-plan.ts';
import type { Group } from '../../core/rollup.ts';
import { columnOf, startName } from '../../core/trace-fields.ts';
import { uuidText } from '../../core/uuid.ts';
import { groupHashes } from '../group-hashes.ts';
import { lookupBlockBits, lookupQuestion } from '../trace-lookups.ts';
import type { Values } from './connection.ts';
import { activeMarks, countedColumns, tailOf } from './rollup-statements.ts';

/** Statements that depend on the fields of a query. */
export interface QueryStatement {
  text: string;
  values: Values;
  /** Without values in the filter there are few different texts, so that they can stay prepared. */
  isPrepared: boolean;
}

export type RollupPlan = Extract<QueryPlan, { kind: 'rollups' }>;

/** Collects the parameters of a statement whose first one is the team. */
export class Parameters {
  readonly values: unknown[];

  constructor(teamId: string) {
    this.values = [teamId];
  }

  add(value: unknown, type: string): string {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }
}

/** The labels that a query needs from each row. */
export function labelsOf({ filter, groupBy }: TallyQuery): Exclude<QueryField, 'status'>[] {
  const fields = new Set([...(Object.keys(filter) as QueryField[]), ...groupBy]);
  return [...fields].filter((name) => name !== 'status');
}

/** The rollups of a query with the values of their groups, as far as the query needs them. */
export function rollupsOf(teamId: string, query: TallyQuery, plan: RollupPlan): QueryStatement {
  const parameters = new Parameters(teamId);
  const labels = labelsOf(query).map((name) => `, g.${name}`);
  const text = `
    select r.grain, r.bucket, r.calls, r.sums, g.is_error${labels.join('')}
    ${fromRollups(parameters, query, plan)}`;
  return { text, values: parameters.values, isPrepared: isPlain(query) };
}

/** The kinds of rows of a short answer. */
export const answerParts = { tail: 0, rollup: 1, marks: 2 } as const;

/**
 * Everything that a short answer needs, as one statement: a statement sees one snapshot, and takes one round trip. `part` says what
 * each row is. If there are more rows of a kind than its limit, one more is returned.
 */
export function answerOf(
  teamId: string,
  query: TallyQuery,
  plan: RollupPlan,
  { rollupsMax, tailMax }: { rollupsMax: number; tailMax: number },
): QueryStatement {
  const parameters = new Parameters(teamId);
  const labels: readonly string[] = labelsOf(query);
  const counted = countedColumns(labelsOf(query));
  const ofRollup = ['grain', 'bucket', 'calls', 'sums'];
  // PostgreSQL takes the type of a column from the first two parts.
  const tail = [...counted, ...ofRollup.map(() => 'null'), 'null', `${answerParts.tail} as part`];
  const rollup = [
    ...counted.map((name) => (name === 'is_error' || labels.includes(name) ? `g.${name}` : 'null')),
    ...ofRollup.map((name) => `r.${name}`),
    'null',
    answerParts.rollup,
  ];
  const marks = [...counted, ...ofRollup].map(() => 'null');
  const names = [...counted, ...ofRollup, 'time_zone', 'part'];
  const text = `
    select ${names.join(', ')} from (
      (${tailOf(plan.set.speed, tail)} limit ${tailMax + 1})
      union all (select ${rollup.join(', ')} ${fromRollups(parameters, query, plan)} limit ${rollupsMax + 1})
      union all (select ${[...marks, 'time_zone', answerParts.marks].join(', ')} ${activeMarks})
    ) as answer(${names.join(', ')})`;
  return { text, values: parameters.values, isPrepared: isPlain(query) };
}

/** Sums of groups that are not stored yet. */
export interface GroupParts {
  keys: readonly (string | null)[];
  areErrors: readonly boolean[];
  calls: readonly number[];
  sums: readonly Uint8Array[];
}

/**
 * The groups of a query by one field, with the most calls first. The parts of each group are one byte string: for each part a
 * 4-byte integer that is 1 if its calls are errors, their number, the length of the sums, and the sums.
 */
export function groupsOf(
  teamId: string,
  query: TallyQuery,
  plan: RollupPlan,
  tail: GroupParts,
  rowsMax: number | null,
): QueryStatement {
  const parameters = new Parameters(teamId);
  const [field = ''] = query.groupBy;
  const rollups = fromRollups(parameters, query, plan);
  const arrays = [
    parameters.add(tail.keys, 'text[]'),
    parameters.add(tail.areErrors, 'boolean[]'),
    parameters.add(tail.calls, 'bigint[]'),
    parameters.add(tail.sums, 'bytea[]'),
  ];
  const text = `
    select key, sum(calls) as calls, string_agg(
      int4send(is_error::integer) || int8send(calls) || int4send(octet_length(sums)) || sums, ''::bytea) as parts
    from (
      select g.${field} as key, g.is_error, r.calls, r.sums ${rollups}
      union all
      select tail.key collate "C", tail.is_error, tail.calls, tail.sums
      from unnest(${arrays.join(', ')}) as tail(key, is_error, calls, sums)) as parts
    group by key order by sum(calls) desc, key nulls first
    ${rowsMax === null ? '' : `limit ${parameters.add(rowsMax, 'bigint')}`}`;
  return { text, values: parameters.values, isPrepared: isPlain(query) };
}

/** The traces of a query, for questions that no rollups can answer; with metadata if the query filters by it. */
export function tracesOf(teamId: string, query: TallyQuery): QueryStatement {
  const parameters = new Parameters(teamId);
  const columns = countedColumns(labelsOf(query)).map((name) => `t.${name}`);
  const conditions = criteriaOf(parameters, query);
  const metadata = hasMetadataFilter(query) ? ['p.metadata', 'p.zstd_mask'] : [];
  const text = `
    select ${[...columns, ...metadata].join(', ')}
    from ${lookupQuestion(query.filter) ? inBlocks(conditions) : inOrder(conditions)}
      ${metadata.length > 0 ? joinMetadata : ''}`;
  return { text, values: parameters.values, isPrepared: false };
}

const joinMetadata = `
      left join lateral (
        select metadata, zstd_mask from trace_payloads where team_id = $1 and seq = t.seq limit 1) as p on true`;

function inOrder(conditions: readonly string[]): string {
  return `(
      select * from traces t
      where t.team_id = $1 and t.seq <= (select last_seq from team_counters where team_id = $1)
        ${allOf(conditions)}) as t`;
}

/** Traces that can be looked up are found one block after the other, as the indexes are ordered. As a plain join, PostgreSQL may read all traces. */
function inBlocks(conditions: readonly string[]): string {
  return `
      (select first_seq, last_seq from team_counters where team_id = $1) as c,
      generate_series(c.first_seq >> ${lookupBlockBits}, c.last_seq >> ${lookupBlockBits}) as block,
      lateral (
        select * from traces t
        where t.team_id = $1 and (t.seq >> ${lookupBlockBits}) = block and t.seq <= c.last_seq
          ${allOf(conditions)}
        offset 0) as t`;
}

function allOf(conditions: readonly string[]): string {
  return conditions.map((condition) => `and ${condition}`).join(' ');
}

/** When a call happened, exactly as in the index. */
export const eventTime = `coalesce(t.${columnOf(startName)}, t.created_at_us)`;

/** The conditions on the narrow columns of `traces t`. */
export function criteriaOf(
  parameters: Parameters,
  criteria: TraceCriteria & Partial<SearchCriteria>,
  time = eventTime,
): string[] {
  const { range, minimums = {} } = criteria;
  return [
    ...filterOf(parameters, criteria, (field) => `t.${columnOf(field)}`),
    ...Object.entries(minimums).map(
      ([name, least]) =>
        `t.${columnOf(name as keyof typeof minimums)} >= ${parameters.add(least, 'double precision')}`,
    ),
    ...(range
      ? [
          `${time} >= ${parameters.add(range.fromUs, 'bigint')}`,
          `${time} < ${parameters.add(range.toUs, 'bigint')}`,
        ]
      : []),
  ];
}

/**
 * The rollups of each tile are one range of the primary key. As a join with a list of tiles, PostgreSQL may read all rollups of the set
 * and filter them.
 */
function fromRollups(
  parameters: Parameters,
  query: TallyQuery,
  { set, tiles }: RollupPlan,
): string {
  const ranges = tiles.map(
    ({ grain, fromBucket, toBucket }) =>
      `grain = ${grain} and bucket >= ${parameters.add(fromBucket, 'bigint')} and bucket < ${parameters.add(toBucket, 'bigint')}`,
  );
  const parts = (ranges.length > 0 ? ranges : ['false']).map(
    (range) => `
      select grain, bucket, group_hash, calls, sums from rollup_rows
      where team_id = $1 and generation = (select generation ${activeMarks}) and set_no = ${set.number} and ${range}`,
  );
  const hashes = groupHashes(query.filter, set)?.map(uuidText);
  const conditions = hashes
    ? [`r.group_hash = any(${parameters.add(hashes, 'uuid[]')})`]
    : filterOf(parameters, query, (field) => `g.${columnOf(field)}`);
  return `
    from (${parts.join(' union all ')}) as r, rollup_groups g
    where g.team_id = $1 and g.group_hash = r.group_hash ${allOf(conditions)}`;
}

function isPlain({ filter }: TallyQuery): boolean {
  return Object.values(filter).every((accepted) => accepted === 'set');
}

/** The conditions of a filter. Both `traces` and `rollup_groups` have the status as a flag. */
function filterOf(
  parameters: Parameters,
  { filter }: TraceCriteria,
  columnAt: (field: QueryField) => string,
): string[] {
  return Object.entries(filter).map(([name, accepted]) => {
    const field = name as QueryField;
    const column = columnAt(field);
    if (accepted === 'set') return `${column} is not null`;
    if (field === 'status') return statusCondition(column, accepted);
    const isAny = `${column} = any(${parameters.add(
      accepted.filter((value) => value !== null),
      'text[]',
    )})`;
    return accepted.includes(null) ? `(${isAny} or ${column} is null)` : isAny;
  });
}

/** Without parameters, so that PostgreSQL can use the index of errors. */
function statusCondition(column: string, accepted: readonly (string | null)[]): string {
  const [hasErrors, hasSuccesses] = [accepted.includes('error'), accepted.includes('success')];
  if (hasErrors && hasSuccesses) return 'true';
  return hasErrors ? column : hasSuccesses ? `not ${column}` : 'false';
}

/** A group from the columns of a row. Those that were not read are absent. */
export function groupFromRow(row: Readonly<Record<string, unknown>>): Group {
  const values = dimensionFields.flatMap((name) =>
    row[name] === undefined ? [] : [[name, row[name]] as const],
  );
  return { status: row['is_error'] === true ? 'error' : 'success', ...Object.fromEntries(values) };
}
