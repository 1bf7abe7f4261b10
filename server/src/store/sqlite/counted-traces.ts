import type { DatabaseSync } from 'node:sqlite';
import { compile } from '../../core/compile.ts';
import type { TallyQuery } from '../../core/query.ts';
import type { CountedTrace } from '../../core/rollup.ts';
import { columnOf, narrowNames, traceFields } from '../../core/trace-fields.ts';
import type { NarrowName } from '../../core/trace-fields.ts';
import { narrowColumns, narrowFrom } from '../trace-rows.ts';
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
}

export type RowValues = readonly (string | number | null)[];

type SqlValues = readonly (string | number | bigint | Uint8Array | null)[];

/** Node's types do not express that rows are arrays. */
export interface ArrayStatement {
  all(...values: SqlValues): RowValues[];
  /** Must be read to its end, or returned from. */
  iterate(...values: SqlValues): Iterable<RowValues>;
}

export const countedColumns = columnsWith(narrowColumns);

function columnsWith(narrow: readonly string[]): string {
  return [`${seqOfRowId} as seq`, 'created_at_us', ...narrow].join(', ');
}

/** The same for one query, with null for every label that it does not ask for: making a text takes longer than reading a number. */
export function countedColumnsOf({ filter, groupBy }: TallyQuery): string {
  const asked = new Set<string>([...Object.keys(filter), ...groupBy]);
  const isNeeded = (name: NarrowName): boolean =>
    traceFields[name].kind !== 'label' || asked.has(name);
  return columnsWith(narrowNames.map((name) => (isNeeded(name) ? columnOf(name) : 'null')));
}

export function prepareArrays(db: DatabaseSync, sql: string): ArrayStatement {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement as unknown as ArrayStatement;
}

/** From a row of `countedColumns`. */
export const countedOfValues = compile<(row: RowValues) => CountedTrace>(
  `(row) => ({ createdAtUs: row[1], ${narrowFrom((column) => `row[${2 + narrowColumns.indexOf(column)}]`)} })`,
);

export function openCountedTraces(db: DatabaseSync): CountedTraces {
  const read = prepareArrays(
    db,
    `select ${countedColumns} from traces where key between ${rowIdOf} and ${rowIdOf} order by key limit ?`,
  );
  return {
    each(teamNo, { afterSeq, toSeq }, rowsMax, add) {
      const rows = read.all(teamNo, afterSeq + 1, teamNo, toSeq, rowsMax);
      for (const row of rows) add(countedOfValues(row), row[0] as number);
      return rows.length;
    },
  };
}
