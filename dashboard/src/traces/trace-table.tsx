import { useRef } from 'preact/hooks';
import type { ListedTrace } from '../../../client/src/reading.ts';
import { columnMoney } from '../format/money.ts';
import type { TracesRoute } from '../route/route.ts';
import { TraceRow } from './trace-row.tsx';

interface TraceTableProps {
  route: TracesRoute;
  traces: readonly ListedTrace[];
}

/**
 * One page of traces. The roles are explicit because narrow screens lay out the rows as cards, and browsers then drop the table
 * semantics.
 */
export function TraceTable({ route, traces }: TraceTableProps) {
  const isNew = useNewIds(traces);
  const formatCost = columnMoney(traces.map((trace) => trace.cost_usd));
  return (
    <table class="table trace-table" role="table">
      <caption class="visually-hidden">Traces, newest first</caption>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader">Time</th>
          <th role="columnheader">Status</th>
          <th role="columnheader">Model</th>
          <th role="columnheader">Feature</th>
          <th role="columnheader">User</th>
          <th role="columnheader" class="number">
            Tokens in
          </th>
          <th role="columnheader" class="number">
            Tokens out
          </th>
          <th role="columnheader" class="number">
            Latency
          </th>
          <th role="columnheader" class="number">
            Cost
          </th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        {traces.map((trace) => (
          <TraceRow
            key={trace.id}
            route={route}
            trace={trace}
            isNew={isNew(trace.id)}
            formatCost={formatCost}
          />
        ))}
      </tbody>
    </table>
  );
}

/** Returns whether a trace arrived since the list was first shown, so that it can be highlighted. */
function useNewIds(traces: readonly ListedTrace[]): (id: string) => boolean {
  const first = useRef<ReadonlySet<string> | null>(null);
  first.current ??= new Set(traces.map(({ id }) => id));
  const known = first.current;
  return (id) => !known.has(id);
}
