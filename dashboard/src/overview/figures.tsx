import type { ComponentChildren } from 'preact';
import type { DailyRecord, Overview } from '../../../client/src/api-types.ts';
import { Count, Duration, Percent, TotalCost, Unknown } from '../parts/quantity.tsx';
import { knownLatency } from './known-latency.ts';

interface FiguresProps {
  overview: Overview | null;
  daily: readonly DailyRecord[] | null;
}

/** The headline numbers for all time, each with today and yesterday below it. */
export function Figures({ overview, daily }: FiguresProps) {
  const today = daily?.at(-1);
  const yesterday = daily?.at(-2);
  return (
    <section class="figures" aria-label="All time" aria-busy={overview === null}>
      <Figure name="Cost" today={today} yesterday={yesterday} of={costOf}>
        {overview && <TotalCost usd={overview.total_cost_usd} calls={overview.total_calls} />}
      </Figure>
      <Figure name="Calls" today={today} yesterday={yesterday} of={callsOf}>
        {overview && <Count value={overview.total_calls} />}
      </Figure>
      <Figure name="Average latency" today={today} yesterday={yesterday} of={latencyOf}>
        {overview && <Duration value={knownLatency(overview.avg_latency_ms)} />}
      </Figure>
      <Figure name="Success rate" today={today} yesterday={yesterday} of={successOf}>
        {overview && <Percent value={overview.success_rate} />}
      </Figure>
      <Figure name="Errors" today={today} yesterday={yesterday} of={errorsOf}>
        {overview && <Count value={overview.error_count} />}
      </Figure>
    </section>
  );
}

interface FigureProps {
  name: string;
  children: ComponentChildren;
  today: DailyRecord | undefined;
  yesterday: DailyRecord | undefined;
  of: (day: DailyRecord) => ComponentChildren;
}

function Figure({ name, children, today, yesterday, of }: FigureProps) {
  return (
    <dl class="figure">
      <dt>{name}</dt>
      <dd class="figure-value">{children ?? <span class="bone" aria-hidden="true" />}</dd>
      <dd class="figure-days">
        {today !== undefined && (
          <span title="Since midnight in the time zone of the team">
            Today <b>{of(today)}</b>
          </span>
        )}
        {yesterday !== undefined && (
          <span title="The previous day in the time zone of the team">
            Yesterday <b>{of(yesterday)}</b>
          </span>
        )}
      </dd>
    </dl>
  );
}

function costOf(day: DailyRecord) {
  return <TotalCost usd={day.total_cost_usd} calls={day.call_count} />;
}

function callsOf(day: DailyRecord) {
  return <Count value={day.call_count} />;
}

function errorsOf(day: DailyRecord) {
  return <Count value={day.error_count} />;
}

function latencyOf(day: DailyRecord) {
  return <Duration value={knownLatency(day.avg_latency_ms)} />;
}

/** A day without calls has no rate, which is not the same as 0%. */
function successOf({ call_count: calls, error_count: errors }: DailyRecord) {
  if (calls === 0) return <Unknown />;
  return <Percent value={(100 * (calls - errors)) / calls} />;
}
