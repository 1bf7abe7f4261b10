/** A line of a breakdown: who, how often, for how much. */
export interface ShareRow {
  name: string;
  calls: number;
  costUsd: number;
  /** Null where it is not known. */
  latencyMs: number | null;
  successRate: number | null;
}

export type ShareBasis = 'cost' | 'calls';
export type ShareColumn = 'name' | 'calls' | 'costUsd' | 'latencyMs' | 'successRate';

export interface ShareOrder {
  column: ShareColumn;
  isDescending: boolean;
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

export function shareOf(
  row: Pick<ShareRow, 'calls' | 'costUsd'>,
  total: Pick<ShareRow, 'calls' | 'costUsd'>,
  basis: ShareBasis,
): number {
  const [part, whole] = basis === 'cost' ? [row.costUsd, total.costUsd] : [row.calls, total.calls];
  return whole === 0 ? 0 : Math.min(1, part / whole);
}
