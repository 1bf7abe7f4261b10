import type { SearchCriteria, TraceCriteria, TraceFilter } from '../../core/query.ts';
import { columnOf, startName } from '../../core/trace-fields.ts';
import { filterSql } from './filter-sql.ts';
import type { FilterSql } from './filter-sql.ts';

/** When the call happened, exactly as in the index. */
export const eventTime = `coalesce(${columnOf(startName)}, created_at_us)`;

/** The traces through the index of those with errors. */
export const errorTable = 'traces indexed by traces_with_errors';

/** Whether a filter accepts only traces with errors. */
export function isOfErrors({ status }: TraceFilter): boolean {
  return Array.isArray(status) && status.every((value) => value === 'error');
}

/** The conditions on the narrow columns of a trace. Payloads are checked apart. */
export function criteriaSql(criteria: TraceCriteria & Partial<SearchCriteria>): FilterSql {
  const { filter, range, minimums = {} } = criteria;
  const { text, values } = filterSql(filter, '');
  const parts = Object.entries(minimums).map(([name, least]) => ({
    text: ` and ${columnOf(name as keyof typeof minimums)} >= ?`,
    values: [least],
  }));
  if (range) {
    // The plus keeps SQLite from using the index on times, which would read the traces in another order.
    const time = `+${eventTime}`;
    parts.push({
      text: ` and ${time} >= ? and ${time} < ?`,
      values: [range.fromUs, range.toUs],
    });
  }
  return {
    text: text + parts.map((part) => part.text).join(''),
    values: [...values, ...parts.flatMap((part) => part.values)],
  };
}
