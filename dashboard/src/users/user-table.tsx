import type { QueryReply, QueryTotals } from '../../../client/src/reading.ts';
import { exactCount } from '../format/count.ts';
import { columnMoney } from '../format/money.ts';
import { DownloadCsv } from '../parts/download-csv.tsx';
import type { Sheet } from '../parts/download-csv.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { Count, Duration, TotalCost } from '../parts/quantity.tsx';
import { behind, tracesHref, userOrders, usersHref } from '../route/route.ts';
import type { UserOrder, UsersRoute } from '../route/route.ts';
import type { FilterField } from '../view/filters.ts';
import type { UserRow } from './user-rows.ts';

interface UserTableProps {
  route: UsersRoute;
  rows: readonly UserRow[];
  reply: QueryReply;
}

const names: Record<UserOrder, string> = {
  cost: 'Cost',
  calls: 'Calls',
  errors: 'Errors',
  p95: 'p95 latency',
};

/** The roles are explicit because narrow screens lay out the rows as cards, and browsers then drop the table semantics. */
export function UserTable({ route, rows, reply }: UserTableProps) {
  const [other] = reply.other;
  const isSearch = route.search !== '';
  const rest = isSearch ? undefined : other;
  const costs = [...rows.map(({ totals }) => totals), ...(rest ? [rest] : [])];
  const formatCost = columnMoney(costs.map((totals) => totals.total_cost_usd));
  return (
    <>
      <div class="table-tools">
        <p class="muted small">{noteOf(route, reply)}</p>
        <DownloadCsv name="Users" sheet={() => sheetOf(rows)} />
      </div>
      <div class="card table-card" role="region" aria-label="Users">
        <table class="table stacked-table user-table" role="table">
          <caption class="visually-hidden">Users, ordered by {names[route.order]}</caption>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader" scope="col">
                User
              </th>
              {userOrders.map((order) => (
                <OrderHeader key={order} route={route} order={order} />
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {rows.map(({ user, totals }) => (
              <UserLine
                key={`user ${JSON.stringify(user)}`}
                route={route}
                user={user}
                totals={totals}
                formatCost={formatCost}
              />
            ))}
            {rest !== undefined && (
              <UserLine
                key="other"
                route={route}
                user={undefined}
                totals={rest}
                formatCost={formatCost}
              />
            )}
            {rows.length === 0 && (
              <tr role="row">
                <td role="cell" colSpan={5} class="muted">
                  {isSearch ? 'No user matches.' : 'No calls.'}
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </>
  );
}

const extremes: Record<UserOrder, string> = {
  cost: 'the highest cost',
  calls: 'the most calls',
  errors: 'the most errors',
  p95: 'the highest p95 latency',
};

/** What the table leaves out. */
function noteOf({ search, order }: UsersRoute, { rows, other }: QueryReply): string {
  if (other.length === 0) return '';
  const listed = `${exactCount(rows.length)} users with ${extremes[order]}`;
  if (search === '') return `The ${listed}; search to find others.`;
  return `Searched the ${listed}. To find any other user, enter the complete identifier.`;
}

function sheetOf(rows: readonly UserRow[]): Sheet {
  return {
    header: ['user_identifier', 'cost_usd', 'calls', 'errors', 'p95_latency_ms'],
    rows: rows.map(({ user, totals }) => [
      user,
      totals.total_cost_usd,
      totals.call_count,
      totals.error_count,
      totals.p95_latency_ms,
    ]),
  };
}

/** The server orders them, since it lists only the first. */
function OrderHeader({ route, order }: { route: UsersRoute; order: UserOrder }) {
  const isChosen = route.order === order;
  return (
    <th role="columnheader" scope="col" class="number" aria-sort={isChosen ? 'descending' : 'none'}>
      <a class="sort" href={usersHref({ ...route, order })}>
        {names[order]}
        <span class="sort-arrow" aria-hidden="true">
          {isChosen ? '↓' : ''}
        </span>
      </a>
    </th>
  );
}

interface UserLineProps {
  route: UsersRoute;
  /** Undefined: all others together. */
  user: string | null | undefined;
  totals: QueryTotals;
  formatCost: (usd: number) => string;
}

function UserLine({ route, user, totals, formatCost }: UserLineProps) {
  return (
    <tr role="row" class={user === undefined ? 'rest' : ''}>
      <th role="rowheader" scope="row">
        {user === undefined ? (
          <span class="clipped unset">other</span>
        ) : (
          <NameLink route={route} field="user_identifier" value={user} />
        )}
      </th>
      <td role="cell" class="number">
        <TotalCost usd={totals.total_cost_usd} calls={totals.call_count} format={formatCost} />
      </td>
      <td role="cell" class="number">
        <TracesLink route={route} user={user} count={totals.call_count} />
      </td>
      <td role="cell" class="number">
        <TracesLink route={route} user={user} count={totals.error_count} status="error" />
      </td>
      <td role="cell" class="number">
        <Duration value={totals.p95_latency_ms} />
      </td>
    </tr>
  );
}

interface TracesLinkProps {
  route: UsersRoute;
  user: string | null | undefined;
  count: number;
  status?: 'error';
}

function TracesLink({ route, user, count, status }: TracesLinkProps) {
  if (user === undefined || count === 0) return <Count value={count} />;
  const more: Partial<Record<FilterField, string | null>> = { user_identifier: user };
  const question = behind(route, status === undefined ? more : { ...more, status });
  return (
    <a class="figure-link" href={tracesHref({ question })}>
      <Count value={count} />
    </a>
  );
}
