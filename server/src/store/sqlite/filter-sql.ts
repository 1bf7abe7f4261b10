import type { QueryField, TraceFilter } from '../../core/query.ts';
import { columnOf } from '../../core/trace-fields.ts';

/** A condition and its values. The text depends only on the fields and on whether each has one value, so its statement can be prepared once. */
export interface FilterSql {
  /** Begins with `and` for each field; empty if there is no filter. */
  text: string;
  values: readonly (string | number)[];
}

/** `prefix` is put before each column. */
export function filterSql(filter: TraceFilter, prefix: string): FilterSql {
  const parts = Object.entries(filter).map(([name, accepted]) => {
    const field = name as QueryField;
    const column = `${prefix}${columnOf(field)}`;
    if (accepted === 'set') return { text: `${column} is not null`, values: [] };
    if (field === 'status') return { text: statusSql(column, accepted), values: [] };
    const values = accepted.filter((value) => value !== null);
    // Several times as fast as a list.
    if (accepted.length === 1 && values.length === 1) return { text: `${column} = ?`, values };
    return {
      text: `(${column} in (select value from json_each(?)) or (? and ${column} is null))`,
      values: [JSON.stringify(values), accepted.includes(null) ? 1 : 0],
    };
  });
  return {
    text: parts.map(({ text }) => ` and ${text}`).join(''),
    values: parts.flatMap(({ values }) => values),
  };
}

/** Without parameters, so that SQLite can use the index of errors. */
function statusSql(column: string, accepted: readonly (string | null)[]): string {
  const flags = ['success', 'error'].flatMap((status, flag) =>
    accepted.includes(status) ? [flag] : [],
  );
  return flags.length === 1 ? `${column} = ${flags[0]}` : `${column} in (${flags.join(', ')})`;
}
