import type { DailyRecord } from '../../../client/src/api-types.ts';
import { columnMoney } from '../format/money.ts';
import { Count, Duration, TotalCost } from '../parts/quantity.tsx';
import { knownLatency } from './known-latency.ts';

/** The numbers behind the charts, today first. */
export function DailyTable({ daily }: { daily: readonly DailyRecord[] }) {
  const formatCost = columnMoney(daily.map((day) => day.total_cost_usd));
  return (
    <div class="card table-card" tabIndex={0} role="region" aria-label="Days">
      <table class="table daily-table">
        <caption class="visually-hidden">Calls, errors, cost and latency per day</caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col" class="number">
              Calls
            </th>
            <th scope="col" class="number">
              Errors
            </th>
            <th scope="col" class="number">
              Cost
            </th>
            <th scope="col" class="number">
              Average latency
            </th>
          </tr>
        </thead>
        <tbody>
          {daily.toReversed().map((day) => (
            <tr key={day.date}>
              <th scope="row">
                <time dateTime={day.date}>{day.label}</time>
              </th>
              <td class="number">
                <Count value={day.call_count} />
              </td>
              <td class="number">
                <Count value={day.error_count} />
              </td>
              <td class="number">
                <TotalCost usd={day.total_cost_usd} calls={day.call_count} format={formatCost} />
              </td>
              <td class="number">
                <Duration value={knownLatency(day.avg_latency_ms)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
