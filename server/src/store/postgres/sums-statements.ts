import type { SumsQuestion } from '../../query/sums-sql.ts';
import { SumsSql, sumNames } from '../../query/sums-sql.ts';
import type { RankOrder } from '../../core/report.ts';
import { isPercentile } from '../../core/record-fields.ts';
import { PostgresSums } from './sums-dialect.ts';
import type { QueryStatement } from './tally-statements.ts';

/** The parts of an answer. */
export const sumParts = { listed: 1, together: 2 } as const;

/**
 * Every sum, or the first `rowsMax`, with the time zone of the team in each row: at least one, which has no sums if there are none, or if more
 * than `tailMax` traces would have to be added up.
 */
export function listedSums(
  teamId: string,
  question: SumsQuestion,
  rowsMax: number | null,
  tailMax: number,
): QueryStatement {
  const dialect = new PostgresSums(teamId);
  const list = new SumsSql(dialect, question, question.query.sumsOnly !== true).list();
  const limit = rowsMax === null ? '' : `limit ${dialect.bind(rowsMax, 'integer')}`;
  const text = `
    with ${PostgresSums.markOfTail(tailMax)}
    select k.time_zone, k.is_behind, a.* from k left join (
      select ${sumParts.listed} as part, l.* from (${list} ${limit}) as l) as a on true`;
  return statement(question, text, dialect);
}

/** The sums of a list, without the time zone, for a cursor. */
export function sumsForCursor(teamId: string, question: SumsQuestion): QueryStatement {
  const dialect = new PostgresSums(teamId);
  const list = new SumsSql(dialect, question, question.query.sumsOnly !== true).list();
  return statement(question, `with ${PostgresSums.mark} ${list}`, dialect);
}

/** The same for the first groups, or all if they are ordered by a percentile, and for all groups together. */
export function rankedSums(
  teamId: string,
  question: SumsQuestion,
  together: SumsQuestion | null,
  order: RankOrder,
  groupsMax: number,
  tailMax: number,
): QueryStatement {
  const dialect = new PostgresSums(teamId);
  const { query } = question;
  const withArrays = query.sumsOnly !== true || isPercentile(order.by);
  const sql = new SumsSql(dialect, question, withArrays);
  const listed = isPercentile(order.by) ? sql.sums() : sql.ranked(order, groupsMax);
  const parts = [`select ${sumParts.listed} as part, l.* from (${listed}) as l`];
  if (together) {
    const groups = query.groupBy.map((_, i) => `null::text as g${i}`);
    const arrays = withArrays ? ['latencies', 'bins', 'bin_calls'] : [];
    const columns = ['grain', 'bucket', ...groups, ...sumNames, ...arrays].join(', ');
    const sums = new SumsSql(dialect, together, withArrays).sums();
    parts.push(`select ${sumParts.together} as part, ${columns} from (${sums}) as t`);
  }
  const text = `
    with ${PostgresSums.markOfTail(tailMax)}
    select k.time_zone, k.is_behind, a.* from k left join (${parts.join(' union all ')}) as a on true`;
  return statement(question, text, dialect);
}

/** Without values in the filter there are few different texts, so that they can stay prepared. */
function statement(
  { query: { filter } }: SumsQuestion,
  text: string,
  { values }: PostgresSums,
): QueryStatement {
  const isPrepared = Object.values(filter).every((accepted) => accepted === 'set');
  return { text, values, isPrepared };
}
