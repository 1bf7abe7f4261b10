import { formatTimestamp } from '../core/clock.ts';
import type { Call } from './command.ts';

/** A column of a list: its heading for people, its name in JSON, and its value. */
export type Column<T> = readonly [
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
  call.print(product, formatTable(headings, rows));
}

/** Rows as aligned columns under a heading, for people. */
export function formatTable(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  return alignColumns([heading, ...rows]).join('\n');
}

/** One line for each row; the cells of a column have the same width. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

export function optionalTime(us: number | null): string | null {
  return us === null ? null : formatTimestamp(us);
}
