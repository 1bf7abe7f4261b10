import { roundToMicros } from '../format/money.ts';

/** A line of a breakdown: who, how often, for how much. */
export interface ShareRow {
  name: string;
  calls: number;
  costUsd: number;
  /** Null where it is not known. */
  latencyMs: number | null;
  successRate: number | null;
}

/** What is in none of the rows of a breakdown. */
export interface RestRow extends ShareRow {
  /** Which calls these are, in words. */
  title: string;
}

export type ShareTotal = Pick<ShareRow, 'calls' | 'costUsd'>;
export type ShareBasis = 'cost' | 'calls';
export type ShareColumn = 'name' | 'calls' | 'costUsd' | 'latencyMs' | 'successRate';

export interface ShareOrder {
  column: ShareColumn;
  isDescending: boolean;
}

/** All calls less those that are listed; null if there are none left. */
export function restOf(
  rows: readonly ShareRow[],
  total: ShareTotal,
  { name, title }: Pick<RestRow, 'name' | 'title'>,
): RestRow | null {
  const calls = total.calls - rows.reduce((sum, row) => sum + row.calls, 0);
  const costUsd = total.costUsd - rows.reduce((sum, row) => sum + row.costUsd, 0);
  // The two answers may be a moment apart, so the difference may be below 0.
  if (calls <= 0) return null;
  return {
    name,
    title,
    calls,
    costUsd: Math.max(0, roundToMicros(costUsd)),
    latencyMs: null,
    successRate: null,
  };
}

/** Equal ones stay in the order of their names, so that rows do not dance when numbers move; what is not known comes last. */
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

/** Names are looked up from A on, numbers from the largest on; a second press turns it round. */
export function nextOrder(order: ShareOrder, column: ShareColumn): ShareOrder {
  if (order.column === column) return { column, isDescending: !order.isDescending };
  return { column, isDescending: column !== 'name' };
}

export function shareOf(row: ShareTotal, total: ShareTotal, basis: ShareBasis): number {
  const [part, whole] = basis === 'cost' ? [row.costUsd, total.costUsd] : [row.calls, total.calls];
  return whole === 0 ? 0 : Math.min(1, part / whole);
}
