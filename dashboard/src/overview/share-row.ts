import { roundToMicros } from '../format/money.ts';

/** One row of a breakdown. */
export interface ShareRow {
  name: string;
  calls: number;
  costUsd: number;
  /** Null if it is not known. */
  latencyMs: number | null;
  successRate: number | null;
  /** Explains which calls a row without a recorded name has; null for a model or feature. */
  restTitle: string | null;
}

export type ShareTotal = Pick<ShareRow, 'calls' | 'costUsd'>;
export type ShareBasis = 'cost' | 'calls';
export type ShareColumn = 'name' | 'calls' | 'costUsd' | 'latencyMs' | 'successRate';

export interface ShareOrder {
  column: ShareColumn;
  isDescending: boolean;
}

/** The calls that are in none of the rows; null if there are none. */
export function restOf(
  rows: readonly ShareRow[],
  total: ShareTotal,
  { name, restTitle }: { name: string; restTitle: string },
): ShareRow | null {
  const calls = total.calls - rows.reduce((sum, row) => sum + row.calls, 0);
  const costUsd = total.costUsd - rows.reduce((sum, row) => sum + row.costUsd, 0);
  // The total and the rows come from two replies, so the difference may be below 0.
  if (calls <= 0) return null;
  return {
    name,
    restTitle,
    calls,
    costUsd: Math.max(0, roundToMicros(costUsd)),
    latencyMs: null,
    successRate: null,
  };
}

/** Sorts by one column; unknown values come last. Equal rows stay in the order of their names, so that live updates do not reorder them. */
export function sortedRows(rows: readonly ShareRow[], order: ShareOrder): ShareRow[] {
  const { column, isDescending } = order;
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const byName = a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
    if (column === 'name') return sign * byName;
    const [first, second] = [a[column], b[column]];
    if (first === second) return byName;
    if (first === null) return 1;
    return second === null ? -1 : sign * (first - second);
  });
}

/** Names start at A and numbers at the largest; a second click on the same column reverses the order. */
export function nextOrder(order: ShareOrder, column: ShareColumn): ShareOrder {
  if (order.column === column) return { column, isDescending: !order.isDescending };
  return { column, isDescending: column !== 'name' };
}

export function shareOf(row: ShareTotal, total: ShareTotal, basis: ShareBasis): number {
  const [part, whole] = basis === 'cost' ? [row.costUsd, total.costUsd] : [row.calls, total.calls];
  return whole === 0 ? 0 : Math.min(1, part / whole);
}
