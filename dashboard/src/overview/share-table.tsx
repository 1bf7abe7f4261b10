import { useState } from 'preact/hooks';
import { exactCount } from '../format/count.ts';
import { columnMoney } from '../format/money.ts';
import { shortPercent } from '../format/percent.ts';
import { DownloadCsv } from '../parts/download-csv.tsx';
import type { Sheet } from '../parts/download-csv.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { Count, Duration, Percent, TotalCost } from '../parts/quantity.tsx';
import { Skeleton } from '../parts/skeleton.tsx';
import { behind, tracesHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { filterNames } from '../view/filters.ts';
import type { FilterField } from '../view/filters.ts';
import { nextOrder, shareOf, sortedRows } from './share-row.ts';
import type { ShareBasis, ShareColumn, ShareOrder, ShareRow, ShareTotal } from './share-row.ts';

interface ShareTableProps {
  title: string;
  route: OverviewRoute;
  /** What a row is a value of. */
  field: FilterField;
  /** Null while they are loading. */
  rows: readonly ShareRow[] | null;
  /** The sum of all names that are not listed; always last. Null if all are listed. */
  others: ShareRow | null;
  total: ShareTotal;
  basis: ShareBasis;
}

const rowsAtFirst = 8;
/** Up to this many rows the table shows all of them: a button that hides only one or two rows saves no space. */
const rowsUncut = 10;

/** The roles are explicit because narrow screens lay out the rows as cards, and browsers then drop the table semantics. */
export function ShareTable(props: ShareTableProps) {
  const { title, route, field, rows, others, total, basis } = props;
  const [order, setOrder] = useState<ShareOrder | null>(null);
  const [isWhole, setIsWhole] = useState(false);
  const basisColumn = basis === 'cost' ? 'costUsd' : 'calls';
  const current = order ?? { column: basisColumn, isDescending: true };
  const sorted = sortedRows(rows ?? [], current);
  const isLong = sorted.length > rowsUncut;
  const listed = isWhole || !isLong ? sorted : sorted.slice(0, rowsAtFirst);
  const last = others === null ? [] : [others];
  const shown = [...listed, ...last];
  // All rows count, so that "Show all" does not change the number of decimals.
  const formatCost = columnMoney([...sorted, ...last].map(({ costUsd }) => costUsd));
  const header = (column: ShareColumn, label: string) => (
    <SortHeader
      label={label}
      column={column}
      order={current}
      onSort={() => setOrder(nextOrder(current, column))}
    />
  );
  return (
    <div class="card table-card" role="region" aria-label={title}>
      {rows === null ? (
        <Skeleton rows={6} class="table-skeleton" />
      ) : (
        <>
          <div class="table-title">
            <h3>{title}</h3>
            <DownloadCsv name={title} sheet={() => sheetOf(field, [...sorted, ...last])} />
          </div>
          <table class="table stacked-table share-table" role="table">
            <caption class="visually-hidden">{title}, sortable by any column</caption>
            <thead role="rowgroup">
              <tr role="row">
                {header('name', filterNames[field])}
                {header('costUsd', 'Cost')}
                {header('calls', 'Calls')}
                {header('latencyMs', 'Latency')}
                {header('successRate', 'Success')}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {shown.map((row) => (
                <ShareLine
                  key={row.value === undefined ? 'other' : `value ${JSON.stringify(row.value)}`}
                  row={row}
                  route={route}
                  field={field}
                  share={shareOf(row, total, basis)}
                  formatCost={formatCost}
                />
              ))}
              {shown.length === 0 && (
                <tr role="row">
                  <td role="cell" colSpan={5} class="muted">
                    No calls.
                  </td>
                </tr>
              )}
            </tbody>
          </table>
          {isLong && (
            <button type="button" class="button more" onClick={() => setIsWhole(!isWhole)}>
              {isWhole ? `Show the first ${rowsAtFirst}` : `Show all ${exactCount(sorted.length)}`}
            </button>
          )}
        </>
      )}
    </div>
  );
}

/** All rows, not only those that are shown. */
function sheetOf(field: FilterField, rows: readonly ShareRow[]): Sheet {
  return {
    header: [field, 'cost_usd', 'calls', 'errors', 'average_latency_ms', 'p95_latency_ms'],
    rows: rows.map((row) => [
      row.name,
      row.costUsd,
      row.calls,
      row.errors,
      row.latencyMs,
      row.p95Ms,
    ]),
  };
}

interface ShareLineProps {
  row: ShareRow;
  route: OverviewRoute;
  field: FilterField;
  share: number;
  formatCost: (usd: number) => string;
}

function ShareLine({ row, route, field, share, formatCost }: ShareLineProps) {
  return (
    <tr role="row" class={row.value === undefined ? 'rest' : ''}>
      <th role="rowheader" scope="row">
        {row.value === undefined ? (
          <span class="clipped unset" title="All others together">
            <bdi>{row.name}</bdi>
          </span>
        ) : (
          <NameLink route={route} field={field} value={row.value} />
        )}
        <span class="share">
          <span class="share-track" aria-hidden="true">
            <span
              class="share-bar"
              style={{ width: share === 0 ? '0' : `max(2px, ${share * 100}%)` }}
            />
          </span>
          <span class="share-percent">{shortPercent(share)}</span>
        </span>
      </th>
      <td role="cell" class="number">
        <TotalCost usd={row.costUsd} calls={row.calls} format={formatCost} />
      </td>
      <td role="cell" class="number">
        {row.value === undefined ? (
          <Count value={row.calls} />
        ) : (
          <a
            class="figure-link"
            href={tracesHref({ question: behind(route, { [field]: row.value }) })}
          >
            <Count value={row.calls} />
          </a>
        )}
      </td>
      <td role="cell" class="number">
        <Duration value={row.latencyMs} />
      </td>
      <td role="cell" class="number">
        <Percent value={row.successRate} />
      </td>
    </tr>
  );
}

interface SortHeaderProps {
  label: string;
  column: ShareColumn;
  order: ShareOrder;
  onSort: () => void;
}

function SortHeader({ label, column, order, onSort }: SortHeaderProps) {
  const isSorted = order.column === column;
  const direction = order.isDescending ? 'descending' : 'ascending';
  return (
    <th
      role="columnheader"
      scope="col"
      class={column === 'name' ? '' : 'number'}
      aria-sort={isSorted ? direction : 'none'}
    >
      <button type="button" class="sort" onClick={onSort}>
        {label}
        <span class="sort-arrow" aria-hidden="true">
          {isSorted ? (order.isDescending ? '↓' : '↑') : ''}
        </span>
      </button>
    </th>
  );
}
