import { useState } from 'preact/hooks';
import type { Trace, TraceList } from '../../../client/src/reading.ts';
import { columnMoney } from '../format/money.ts';
import { shortDuration } from '../format/duration.ts';
import { useLoad } from '../live/loader.ts';
import { Choice } from '../parts/choice.tsx';
import { ColumnNames } from '../parts/column-names.tsx';
import { DownloadCsv } from '../parts/download-csv.tsx';
import { Failure } from '../parts/failure.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { CallCost, Duration } from '../parts/quantity.tsx';
import { Skeleton } from '../parts/skeleton.tsx';
import { Status } from '../parts/status.tsx';
import { traceHref, tracesHref, tracesRoute } from '../route/route.ts';
import type { TracesRoute } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { sheetOfTraces } from '../traces/trace-sheet.ts';
import { filterNames } from '../view/filters.ts';
import { timelineOf } from './timeline.ts';
import type { TimelineCall } from './timeline.ts';

type Kind = 'run_id' | 'session_id';

/** More than one screen of calls is better read as a list. */
const callsMax = 100;

/** The other calls of the same run or session, as a timeline. Nothing if the trace has neither. */
export function RelatedCalls({ trace }: { trace: Trace }) {
  const kinds = (['run_id', 'session_id'] as const).filter((kind) => trace[kind] !== undefined);
  const [chosen, setChosen] = useState<Kind | null>(null);
  const kind = chosen ?? kinds[0];
  const value = kind === undefined ? undefined : trace[kind];
  if (kind === undefined || value === undefined) return null;
  return (
    <section class="card payload related" aria-labelledby="related-heading">
      <div class="payload-heading">
        <h2 id="related-heading">Calls of this {filterNames[kind].toLowerCase()}</h2>
        {kinds.length > 1 && (
          <Choice
            label="Calls of the same"
            options={kinds.map((one) => ({ value: one, label: filterNames[one] }))}
            value={kind}
            onChange={setChosen}
          />
        )}
      </div>
      <Timeline key={`${kind} ${value}`} kind={kind} value={value} current={trace.id} />
    </section>
  );
}

interface TimelineProps {
  kind: Kind;
  value: string;
  /** The id of the trace that is shown. */
  current: string;
}

function Timeline({ kind, value, current }: TimelineProps) {
  const { reads } = useSession();
  const { state, retry } = useLoad({
    key: `${kind} ${value}`,
    load: (signal) => {
      const filter = { [kind]: value, order: 'started_at' } as const;
      return reads.find(filter, { limit: callsMax, cursor: null }, signal);
    },
  });
  if (state.kind === 'failed') return <Failure error={state.error} onRetry={retry} />;
  if (state.kind === 'loading') return <Skeleton rows={3} class="table-skeleton" />;
  return <TimelineTable kind={kind} value={value} current={current} list={state.value} />;
}

function TimelineTable({ kind, value, current, list }: TimelineProps & { list: TraceList }) {
  const calls = timelineOf(list.traces);
  const formatCost = columnMoney(calls.map(({ trace }) => trace.cost_usd));
  const listed = tracesRoute({ range: null, filters: { [kind]: [value] } });
  return (
    <>
      <div class="table-card timeline-card" tabIndex={0} role="region" aria-label="Timeline">
        <table class="table timeline">
          <caption class="visually-hidden">
            Calls of this {filterNames[kind].toLowerCase()}, in the order in which they began
          </caption>
          <thead>
            <tr>
              <ColumnNames texts={['Began', 'Model', 'Status']} />
              <th scope="col" class="timeline-column">
                Timeline
              </th>
              <ColumnNames numbers={['Latency', 'Cost']} />
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <TimelineRow
                key={call.trace.id}
                listed={listed}
                call={call}
                isCurrent={call.trace.id === current}
                formatCost={formatCost}
              />
            ))}
          </tbody>
        </table>
      </div>
      <div class="timeline-end">
        <a href={tracesHref(listed)}>
          {list.next_cursor === null ? 'Show as a list' : `More than ${callsMax}: show all`}
        </a>
        <DownloadCsv name="Timeline" sheet={() => sheetOfTraces(calls.map(({ trace }) => trace))} />
      </div>
    </>
  );
}

interface TimelineRowProps {
  /** The calls of the run or session as a list, which a name narrows. */
  listed: TracesRoute;
  call: TimelineCall;
  isCurrent: boolean;
  formatCost: (usd: number) => string;
}

function TimelineRow({ listed, call, isCurrent, formatCost }: TimelineRowProps) {
  const { trace, offsetMs, left, width } = call;
  const place = {
    left: `${Math.min(99, left * 100)}%`,
    width: `max(3px, ${width * 100}%)`,
  };
  return (
    <tr class={isCurrent ? 'current' : ''} aria-current={isCurrent ? 'true' : undefined}>
      <th scope="row">
        {isCurrent ? (
          <span>+{shortDuration(offsetMs)}</span>
        ) : (
          <a href={traceHref(trace.id)}>
            +{shortDuration(offsetMs)}
            <span class="visually-hidden">, {trace.model}</span>
          </a>
        )}
      </th>
      <td>
        <NameLink route={listed} field="model" value={trace.model} />
        {trace.feature_name !== null && (
          <span class="row-prompt">
            <NameLink route={listed} field="feature_name" value={trace.feature_name} />
          </span>
        )}
      </td>
      <td>
        <Status status={trace.status} />
      </td>
      <td aria-hidden="true">
        <span class="timeline-track">
          <span class={`timeline-bar ${trace.status}`} style={place} />
        </span>
      </td>
      <td class="number">
        <Duration value={trace.latency_ms} />
      </td>
      <td class="number">
        <CallCost usd={trace.cost_usd} format={formatCost} />
      </td>
    </tr>
  );
}
