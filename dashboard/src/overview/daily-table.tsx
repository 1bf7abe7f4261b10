import type { DailyRecord } from '../../../client/src/api-types.ts';
import { Count, Duration, Money } from '../parts/quantity.tsx';
import { knownLatency } from './known-latency.ts';

/** What the charts show, as numbers; today first, since that is what one looks for. */
export function DailyTable({ daily }: { daily: readonly DailyRecord[] }) {
  return (
    <div class="card table-card" tabIndex={0} role="region" aria-label="Days">
      <table class="table daily-table">
        <caption class="visually-hidden">Calls, errors, cost and latency of each day (UTC)</caption>
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
                <Money value={day.total_cost_usd} />
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
