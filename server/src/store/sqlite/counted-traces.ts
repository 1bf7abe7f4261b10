import type { DatabaseSync } from 'node:sqlite';
import { compile } from '../../core/compile.ts';
import { addedNames } from '../../core/measures.ts';
import type { QueryField } from '../../core/query.ts';
import type { CountedTrace } from '../../core/rollup.ts';
import { columnOf, narrowNames, startName } from '../../core/trace-fields.ts';
import { narrowColumns, narrowFrom } from '../trace-rows.ts';
import { prepareArrays } from './array-statement.ts';
import type { RowValues } from './array-statement.ts';
import { rowIdOf, seqOfRowId } from './row-id.ts';

/** Reads the narrow rows of consecutive traces. Rows are arrays, since objects with names would cost as much as reading them. */
export interface CountedTraces {
  /** Calls `add` with each trace after `afterSeq` up to `toSeq`, in order, at most `rowsMax`. Returns their number. */
  each(
    teamNo: number,
    range: { afterSeq: number; toSeq: number },
    rowsMax: number,
    add: (trace: CountedTrace, seq: number) => void,
  ): number;
  /** Calls `add` with the values of each change after `afterNo` up to `toNo` of traces up to `upToSeq`. */
  eachChange(
    teamNo: number,
    range: { afterNo: number; toNo: number; upToSeq: number },
    add: (trace: CountedTrace, weight: number) => void,
  ): void;
}

export const countedColumns = columnsWith(narrowColumns);

function columnsWith(narrow: readonly string[]): string {
  return [`${seqOfRowId} as seq`, 'created_at_us', ...narrow].join(', ');
}

/** How traces that match a query are read, as far as they are added up. */
export interface MatchingRows {
  columns: string;
  traceOf(row: RowValues): CountedTrace;
}

/** Of the labels only some: each value takes time. All others are null. */
export function matchingRows(labels: readonly QueryField[]): MatchingRows {
  const needed = new Set<string>([...addedNames, startName, ...labels]);
  const names = narrowNames.filter((name) => needed.has(name)).map(columnOf);
  const columns = ['created_at_us', ...names].join(', ');
  let traceOf = tracesOf.get(columns);
  if (!traceOf) {
    traceOf = compile<MatchingRows['traceOf']>(
      `(row) => ({ createdAtUs: row[0], ${narrowFrom((column) => (names.includes(column) ? `row[${1 + names.indexOf(column)}]` : 'null'))} })`,
    );
    tracesOf.set(columns, traceOf);
  }
  return { columns, traceOf };
}

/** By their columns. A query can group by few fields, so there are few. */
const tracesOf = new Map<string, MatchingRows['traceOf']>();

/** From a row of `countedColumns`. */
export const countedOfValues = compile<(row: RowValues) => CountedTrace>(
  `(row) => ({ createdAtUs: row[1], ${narrowFrom((column) => `row[${2 + narrowColumns.indexOf(column)}]`)} })`,
);

export function openCountedTraces(db: DatabaseSync): CountedTraces {
  const read = prepareArrays(
    db,
    `select ${countedColumns} from traces where key between ${rowIdOf} and ${rowIdOf} order by key limit ?`,
  );
  const readChanges = prepareArrays(
    db,
    `select weight, created_at_us, ${narrowColumns.join(', ')} from trace_changes
     where key between ${rowIdOf} and ${rowIdOf} and seq <= ?`,
  );
  return {
    each(teamNo, { afterSeq, toSeq }, rowsMax, add) {
      const rows = read.all(teamNo, afterSeq + 1, teamNo, toSeq, rowsMax);
      for (const row of rows) add(countedOfValues(row), row[0] as number);
      return rows.length;
    },
    eachChange(teamNo, { afterNo, toNo, upToSeq }, add) {
      for (const row of readChanges.all(teamNo, afterNo + 1, teamNo, toNo, upToSeq)) {
        add(countedOfValues(row), row[0] as number);
      }
    },
  };
}
