import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { GroupMeasures } from '../../core/analytics.ts';
import { allTime, measureNames } from '../../core/rollup.ts';
import type { Measures } from '../../core/rollup.ts';

export const measureColumns = measureNames.join(', ');

/** A row as an array. Creating objects with named properties would cost as much as reading the rows. */
export type RowValues = readonly SQLOutputValue[];

/** Node's types do not express that rows are arrays. */
export interface MeasuresStatement {
  get(...values: SQLInputValue[]): RowValues | undefined;
  all(...values: SQLInputValue[]): RowValues[];
  iterate(...values: SQLInputValue[]): Iterable<RowValues>;
}

/** A statement that reads sums: rows as arrays, integers as BigInt since sums may exceed 2^53. */
export function prepareMeasures(db: DatabaseSync, sql: string): MeasuresStatement {
  const statement = db.prepare(sql);
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement as unknown as MeasuresStatement;
}

/** Reads `measureColumns`, starting at index `at`. */
export function measuresFromRow(row: RowValues, at: number): Measures {
  const measures: Record<string, unknown> = {};
  let i = at;
  for (const name of measureNames) measures[name] = row[i++];
  return measures as Measures;
}

export const ofTeam = 'team_no = (select no from teams where id = ?)';

/** All groups of a dimension, by calls descending, then by name. Values: team, dimension. */
export const selectGroups = `
  select key, ${measureColumns} from rollups where ${ofTeam} and dimension = ? and day = ${allTime}
  order by calls desc, key`;

export function groupFromRow(row: RowValues): GroupMeasures {
  return { group: row[0] as string, measures: measuresFromRow(row, 1) };
}
