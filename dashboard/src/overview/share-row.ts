import type { QueryReply, QueryTotals } from '../../../client/src/reading.ts';
import { notSet } from '../view/filters.ts';
import type { FilterField } from '../view/filters.ts';

/** One row of a breakdown. */
export interface ShareRow {
  name: string;
  /** The value to filter by: null for calls without one, undefined for all others together. */
  value: string | null | undefined;
  calls: number;
  errors: number;
  costUsd: number;
  /** Null if it is not known. */
  latencyMs: number | null;
  p95Ms: number | null;
  successRate: number | null;
}

export type ShareTotal = Pick<ShareRow, 'calls' | 'costUsd'>;
export type ShareBasis = 'cost' | 'calls';
export type ShareColumn = 'name' | 'calls' | 'costUsd' | 'latencyMs' | 'successRate';

export interface ShareOrder {
  column: ShareColumn;
  isDescending: boolean;
}

/** The groups of an answer. */
export function rowsOf(reply: QueryReply, field: FilterField): ShareRow[] {
  return reply.rows.map((row) => {
    const value = row[field as 'model'] ?? null;
    return { name: value ?? notSet, value, ...numbersOf(row) };
  });
}

/** All groups that are not listed; null if there are none. */
export function othersOf(reply: QueryReply): ShareRow | null {
  const [other] = reply.other;
  return other === undefined ? null : { name: 'other', value: undefined, ...numbersOf(other) };
}

function numbersOf(row: QueryTotals): Omit<ShareRow, 'name' | 'value'> {
  return {
    calls: row.call_count,
    errors: row.error_count,
    costUsd: row.total_cost_usd,
    latencyMs: row.avg_latency_ms,
    p95Ms: row.p95_latency_ms,
    successRate: row.call_count === 0 ? null : row.success_rate,
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
