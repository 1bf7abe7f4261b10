import type { QueryReply, QueryTotals } from '../../../client/src/reading.ts';
import type { UserOrder } from '../route/route.ts';

export interface UserRow {
  /** Null: calls without a user. */
  user: string | null;
  totals: QueryTotals;
}

/** By which measure of the API each column is ordered. */
export const userMeasures = {
  cost: 'total_cost_usd',
  calls: 'call_count',
  errors: 'error_count',
  p95: 'p95_latency_ms',
} as const satisfies Record<UserOrder, keyof QueryTotals>;

export function rowsOfUsers(reply: QueryReply): UserRow[] {
  return reply.rows.map((row) => ({ user: row.user_identifier ?? null, totals: row }));
}

/** Those that have the text anywhere in their name. Upper and lower case do not matter. */
export function matchingUsers(rows: readonly UserRow[], search: string): UserRow[] {
  const wanted = search.toLowerCase();
  if (wanted === '') return [...rows];
  return rows.filter(({ user }) => user !== null && user.toLowerCase().includes(wanted));
}
