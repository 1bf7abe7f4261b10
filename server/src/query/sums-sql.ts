import type { DimensionSet } from '../core/dimensions.ts';
import type { Tile } from '../core/query-plan.ts';
import type { QueryField, TallyQuery, TimeRange, TraceFilter } from '../core/query.ts';
import { isPercentile } from '../core/record-fields.ts';
import type { RankOrder } from '../core/report.ts';
import { columnOf, startName, summedNames } from '../core/trace-fields.ts';

/** A question and where its traces are. */
export interface SumsQuestion {
  query: TallyQuery;
  set: DimensionSet;
  tiles: readonly Tile[];
  /** The range of the tiles; null for all time. */
  covered: TimeRange | null;
  /** Parts of the range whose traces are read one by one. */
  edges: readonly TimeRange[];
}

/** The columns of a rollup that are added up. */
export const addedColumns = [
  'calls',
  'uncosted_calls',
  'latency_count',
  'latency_sum',
  'cost_micros',
  'cost_picos',
  ...summedNames,
] as const;

/** The sums of an answer, in the order of its columns. Rollups have errors as groups of their own. */
export const sumNames = ['errors', ...addedColumns] as const;

/** Values that a statement is given. */
export type BoundType = 'integer' | 'texts';

/** Single traces, or changes of traces, with what each counts for. */
export interface FreshRows {
  weight: '1' | 'weight';
  /** Tables and conditions, but for the filter. */
  from: string;
}

/** One statement of one database. The builder below is the same for all. */
export interface SumsDialect {
  bind(value: unknown, type: BoundType): string;
  /** The sum as an integer. */
  sum(expression: string): string;
  isAmong(column: string, texts: string): string;
  /** The rollups `r` of a tile: tables and conditions. */
  rollupRows(question: SumsQuestion, tile: Tile): string;
  /** Joins the group `g` of the rollup `r`. */
  joinGroups: string;
  /** What rollups of a group are told apart by. */
  groupColumn: string;
  /** Traces after the mark, changes after it, and the traces of the edges. */
  freshRows(question: SumsQuestion): readonly FreshRows[];
  /** Whether the histograms come with the sums, as arrays. */
  hasArrays: boolean;
}

/** When a call happened, exactly as in the indexes. */
export const eventTime = `coalesce(${columnOf(startName)}, created_at_us)`;

/** The grain of a row that is made of single traces: minutes. Every hour, day, week and month of every time zone begins with a minute. */
export const minuteGrain = -1;
const usPerMinute = 60_000_000;

const groupNames = ({ groupBy }: TallyQuery): string[] => groupBy.map((_, i) => `g${i}`);

function list(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}

/** Null comes first. */
const ascending = (names: readonly string[]): string =>
  names.map((name) => `${name} nulls first`).join(', ');

export class SumsSql {
  readonly #dialect: SumsDialect;
  readonly #question: SumsQuestion;
  readonly #withArrays: boolean;

  /** `withArrays` adds the latencies of each sum: stored histograms, and the bins of single traces with their counts. */
  constructor(dialect: SumsDialect, question: SumsQuestion, withArrays = false) {
    this.#dialect = dialect;
    this.#question = question;
    this.#withArrays = withArrays && dialect.hasArrays;
  }

  /** Every sum, by calls, then by group. */
  list(): string {
    const order = list('calls desc', ascending(groupNames(this.#question.query)));
    return `${this.sums()} order by ${order}`;
  }

  /** The sums of the first groups, which are ranked by their sums over the whole range. */
  ranked(order: RankOrder, groupsMax: number): string {
    const { query } = this.#question;
    const groups = groupNames(query);
    if (groups.length === 0) return this.sums();
    const direction = order.isDescending ? 'desc' : 'asc';
    const by = rankTerms(order).map((term) => `${term} ${direction} nulls last`);
    const limit = this.#dialect.bind(groupsMax, 'integer');
    const ranking = list(...by, ascending(groups));
    if (query.interval === null) {
      return `select * from (${this.sums()}) as s order by ${ranking} limit ${limit}`;
    }
    const sums = sumNames.map((name) => `${this.#dialect.sum(name)} as ${name}`).join(', ');
    // Null is not equal to null, and a database cannot join by anything but equality without comparing every row with each other.
    const keys = groups.map((name) => `coalesce(${name}, '\u0001') as ${name}_key`).join(', ');
    const isSame = groups.map((name) => `s.${name}_key = r.${name}_key`).join(' and ');
    const columns = list('grain', 'bucket', ...groups, ...sumNames, ...this.#arrayNames());
    return `
      select ${columns} from (
        with sums as materialized (select t.*, ${keys} from (${this.sums()}) as t)
        select s.* from (
          select ${groups.map((name) => `${name}_key`).join(', ')} from (
            select ${groups.join(', ')}, ${groups.map((name) => `${name}_key`).join(', ')}, ${sums} from sums
            group by ${list(...groups, ...groups.map((name) => `${name}_key`))}) as t
          where calls > 0 order by ${ranking} limit ${limit}) as r
        join sums as s on ${isSame}) as s`;
  }

  /** The names of the columns with latencies. */
  #arrayNames(): string[] {
    return this.#withArrays ? ['latencies', 'bins', 'bin_calls'] : [];
  }

  /** The sums of each bucket and group. With intervals a change may stand in a row of its own, without calls. */
  sums(): string {
    const { query } = this.#question;
    const names = list('grain', 'bucket', ...groupNames(query));
    const sums = sumNames.map((name) => `${this.#dialect.sum(name)} as ${name}`);
    const arrays = this.#withArrays
      ? [
          'array_agg(latencies) filter (where latencies is not null) as latencies',
          'array_agg(bin) filter (where bin is not null) as bins',
          'array_agg(calls) filter (where bin is not null) as bin_calls',
        ]
      : [];
    const parts = [...this.#rolledSums(), ...this.#freshSums()];
    if (parts.length === 0) return this.#nothing();
    const having = query.interval === null ? 'having sum(calls) > 0' : '';
    return `
      select ${list(names, ...sums, ...arrays)} from (${parts.join(' union all ')}) as parts
      group by ${names} ${having}`;
  }

  /** The stored histograms by bucket and group, for a database without arrays. */
  histograms(): string | null {
    const { query, tiles } = this.#question;
    if (tiles.length === 0) return null;
    const { joinGroups } = this.#dialect;
    const filter = this.#filter('g.');
    return tiles
      .map(
        (tile) => `
          select ${list(...this.#bucketOf(tile), groupColumns(query, 'g.'), 'r.latencies')}
          from (select r.* from ${this.#dialect.rollupRows(this.#question, tile)} and r.latency_count > 0) as r ${joinGroups}
          where true${filter}`,
      )
      .join(' union all ');
  }

  /** The bins of single traces by bucket and group. */
  freshBins(): string | null {
    const { query } = this.#question;
    const rows = this.#dialect.freshRows(this.#question);
    if (rows.length === 0) return null;
    const filter = this.#filter('');
    const names = this.#positions(3 + query.groupBy.length);
    return rows
      .map(
        ({ weight, from }) => `
          select ${list(...this.#bucketOfTime(), groupColumns(query, ''), 'latency_bin', `sum(${weight}) as n`)}
          from ${from}${filter} and latency_bin is not null group by ${names}`,
      )
      .join(' union all ');
  }

  #nothing(): string {
    const { query } = this.#question;
    const groups = groupNames(query).map((name) => `null as ${name}`);
    return `select ${list('0 as grain', '0 as bucket', ...groups, ...sumNames.map((name) => `0 as ${name}`))} where false`;
  }

  #positions(count: number): string {
    return Array.from({ length: count }, (_, i) => i + 1).join(', ');
  }

  #filter(prefix: string): string {
    return filterSql(this.#dialect, this.#question.query.filter, prefix);
  }

  /** Which bucket a rollup belongs to: without intervals all are one. */
  #bucketOf({ grain }: Tile): string[] {
    const { interval } = this.#question.query;
    return interval === null ? ['0 as grain', '0 as bucket'] : [`${grain} as grain`, 'r.bucket'];
  }

  /**
   * With intervals the minute of a time, of which the bucket is found later. Databases have time zones of their own, which may be of another
   * year than ours.
   */
  #bucketOfTime(): string[] {
    const { interval } = this.#question.query;
    if (interval === null) return ['0 as grain', '0 as bucket'];
    return [`${minuteGrain} as grain`, `(${eventTime}) / ${usPerMinute} as bucket`];
  }

  #rolledSums(): string[] {
    const { query, tiles } = this.#question;
    const { joinGroups, groupColumn } = this.#dialect;
    if (tiles.length === 0) return [];
    const filter = this.#filter('g.');
    const columns = list(
      groupColumns(query, 'g.'),
      'case when g.is_error then r.calls else 0 end as errors',
      ...addedColumns.map((name) => `r.${name}`),
    );
    if (this.#withArrays) {
      return tiles.map(
        (tile) => `
          select ${list(...this.#bucketOf(tile), columns, 'r.latencies', 'cast(null as integer) as bin')}
          from (select r.* from ${this.#dialect.rollupRows(this.#question, tile)}) as r ${joinGroups} where true${filter}`,
      );
    }
    const sums = addedColumns.map((name) => `${this.#dialect.sum(`r.${name}`)} as ${name}`);
    const stored = tiles.map(
      (tile) => `
        select ${list(...this.#bucketOf(tile), `r.${groupColumn}`, ...sums)}
        from ${this.#dialect.rollupRows(this.#question, tile)} group by 1, 2, 3`,
    );
    return [
      `select ${list('r.grain', 'r.bucket', columns)} from (${stored.join(' union all ')}) as r ${joinGroups} where true${filter}`,
    ];
  }

  #freshSums(): string[] {
    const { query } = this.#question;
    const filter = this.#filter('');
    const bin = this.#withArrays ? ['cast(null as bytea) as latencies', 'latency_bin as bin'] : [];
    const groups = list(groupColumns(query, ''));
    return this.#dialect.freshRows(this.#question).map(({ weight, from }) => {
      const sums = sumNames.map(
        (name) => `${this.#dialect.sum(`${weight} * ${traceValues[name]}`)} as ${name}`,
      );
      const positions = [
        this.#positions(2 + query.groupBy.length),
        ...(this.#withArrays ? ['latency_bin'] : []),
      ].join(', ');
      return `
        select ${list(...this.#bucketOfTime(), groups, ...sums, ...bin)} from ${from}${filter} group by ${positions}`;
    });
  }
}

/** What a single trace adds to each sum. */
const traceValues: Readonly<Record<(typeof sumNames)[number], string>> = {
  errors: '(case when is_error then 1 else 0 end)',
  calls: '1',
  uncosted_calls: '(case when cost_micros is null then 1 else 0 end)',
  latency_count: '(case when latency_bin is null then 0 else 1 end)',
  latency_sum: 'coalesce(latency_ms, 0)',
  cost_micros: 'coalesce(cost_micros, 0)',
  cost_picos: 'coalesce(cost_picos, 0)',
  ...(Object.fromEntries(summedNames.map((name) => [name, `coalesce(${name}, 0)`])) as Record<
    (typeof summedNames)[number],
    string
  >),
};

function groupColumns({ groupBy }: TallyQuery, prefix: string): string {
  return groupBy.map((field, i) => `${valueOf(field, prefix)} as g${i}`).join(', ');
}

function valueOf(field: QueryField, prefix: string): string {
  return field === 'status'
    ? `case when ${prefix}is_error then 'error' else 'success' end`
    : `${prefix}${columnOf(field)}`;
}

/** The conditions of a filter, each after `and`. */
export function filterSql(
  dialect: Pick<SumsDialect, 'bind' | 'isAmong'>,
  filter: TraceFilter,
  prefix: string,
): string {
  return Object.entries(filter)
    .map(([name, accepted]) => {
      const field = name as QueryField;
      const column = `${prefix}${columnOf(field)}`;
      if (accepted === 'set') return ` and ${column} is not null`;
      if (field === 'status') return ` and ${statusSql(column, accepted)}`;
      const texts = accepted.filter((value) => value !== null);
      const isAmong = dialect.isAmong(column, dialect.bind(texts, 'texts'));
      return accepted.includes(null) ? ` and (${isAmong} or ${column} is null)` : ` and ${isAmong}`;
    })
    .join('');
}

/** Without parameters, so that the database can use the index of errors. */
function statusSql(column: string, accepted: readonly (string | null)[]): string {
  const [hasErrors, hasSuccesses] = [accepted.includes('error'), accepted.includes('success')];
  if (hasErrors && hasSuccesses) return 'true';
  return hasErrors ? column : hasSuccesses ? `not ${column}` : 'false';
}

/** What groups are ordered by, exactly as the reply shows it. Other measures are ordered by their sum. */
const rankTermsOf: Partial<Record<RankOrder['by'], readonly string[]>> = {
  call_count: ['calls'],
  error_count: ['errors'],
  total_cost_usd: ['cost_micros + cost_picos / 1000000', 'cost_picos % 1000000'],
  success_rate: ['(20000 * (calls - errors) + calls) / (2 * calls)'],
  avg_latency_ms: ['(2 * latency_sum + latency_count) / (2 * nullif(latency_count, 0))'],
};

function rankTerms({ by }: RankOrder): readonly string[] {
  if (isPercentile(by)) throw new Error('percentiles are not ranked by SQL');
  return rankTermsOf[by] ?? [by];
}
