import { formatTimestamp } from '../core/clock.ts';
import type { Call } from './command.ts';

/** A column of a list: its heading for people, its name in JSON, and its value. */
type Column<T> = readonly [
  heading: string,
  name: string,
  value: (item: T) => string | number | null,
];

/** Prints a list as JSON or as a table, both from the same columns. */
export function printList<T>(call: Call, items: readonly T[], columns: readonly Column<T>[]): void {
  const product = items.map((item) =>
    Object.fromEntries(columns.map(([, name, value]) => [name, value(item)])),
  );
  const headings = columns.map(([heading]) => heading);
  const rows = product.map((row) => Object.values(row).map((value) => String(value ?? '-')));
  call.print(product, alignColumns([headings, ...rows]));
}

/** One line for each row; the cells of a column have the same width. */
export function alignColumns(rows: readonly (readonly string[])[], indent = ''): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows
    .map((row) => indent + row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n');
}

export function optionalTime(us: number | null): string | null {
  return us === null ? null : formatTimestamp(us);
}
