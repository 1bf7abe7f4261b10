import type { DatabaseSync } from 'node:sqlite';

export type RowValues = readonly (string | number | null)[];

type SqlValues = readonly (string | number | bigint | Uint8Array | null)[];

/** Rows are arrays, since objects with names would cost as much as reading them. Node's types do not express that. */
export interface ArrayStatement {
  all(...values: SqlValues): RowValues[];
  /** Must be read to its end, or returned from. */
  iterate(...values: SqlValues): Iterable<RowValues>;
}

/** Integers are read as BigInt if they may exceed 2^53. */
export function prepareArrays(db: DatabaseSync, sql: string, areBig = false): ArrayStatement {
  const statement = db.prepare(sql);
  if (areBig) statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement as unknown as ArrayStatement;
}
