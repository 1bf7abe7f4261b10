import { dimensionFields } from '../../core/dimensions.ts';
import { hasMetadataFilter } from '../../core/query.ts';
import type { QueryField, SearchCriteria, TallyQuery, TraceCriteria } from '../../core/query.ts';
import type { Group } from '../../core/rollup.ts';
import { columnOf, startName } from '../../core/trace-fields.ts';
import { lookupBlockBits, lookupQuestion } from '../trace-lookups.ts';
import type { Values } from './connection.ts';
import { countedColumns } from './rollup-statements.ts';

/** Statements that depend on the fields of a query. */
export interface QueryStatement {
  text: string;
  values: Values;
  /** Without values in the filter there are few different texts, so that they can stay prepared. */
  isPrepared: boolean;
}

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
function labelsOf({ filter, groupBy }: TallyQuery): Exclude<QueryField, 'status'>[] {
  const fields = new Set([...(Object.keys(filter) as QueryField[]), ...groupBy]);
  return [...fields].filter((name) => name !== 'status');
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
