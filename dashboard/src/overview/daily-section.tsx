import { useState } from 'preact/hooks';
import type { DailyRecord } from '../../../client/src/api-types.ts';
import { shortCount } from '../format/count.ts';
import { axisDuration } from '../format/duration.ts';
import { axisMoney, roundToMicros } from '../format/money.ts';
import { Choice } from '../parts/choice.tsx';
import { Count, Duration, TotalCost } from '../parts/quantity.tsx';
import { ChartCard } from './chart-card.tsx';
import { DailyTable } from './daily-table.tsx';
import { knownLatency } from './known-latency.ts';

/** The last seven days, as charts or as a table. */
export function DailySection({ daily }: { daily: readonly DailyRecord[] | null }) {
  const [view, setView] = useState<'charts' | 'table'>('charts');
  return (
    <section aria-labelledby="daily-heading">
      <div class="section-heading">
        <h2 id="daily-heading">Last 7 days</h2>
        <Choice
          label="Show the days as"
          options={[
            { value: 'charts', label: 'Charts' },
            { value: 'table', label: 'Table' },
          ]}
          value={view}
          onChange={setView}
        />
      </div>
      {view === 'table' && daily !== null ? (
        <DailyTable daily={daily} />
      ) : (
        <DailyCharts daily={daily} />
      )}
    </section>
  );
}

function DailyCharts({ daily }: { daily: readonly DailyRecord[] | null }) {
  // A day is selected in all three charts at once.
  const [lookedAt, setLookedAt] = useState<number | null>(null);
  const day = lookedAt === null ? undefined : daily?.[lookedAt];
  const shared = {
    labels: daily?.map(({ label }) => label) ?? null,
    lookedAt: day === undefined ? null : lookedAt,
    onLookAt: setLookedAt,
    dayLabel: day?.label ?? null,
  };
  const sum = (of: (record: DailyRecord) => number): number =>
    (daily ?? []).reduce((total, record) => total + of(record), 0);
  const calls = day?.call_count ?? sum((record) => record.call_count);
  const errors = day?.error_count ?? sum((record) => record.error_count);
  const cost = day?.total_cost_usd ?? roundToMicros(sum((record) => record.total_cost_usd));
  const latencyDay = day ?? daily?.at(-1);
  return (
    <div class="charts">
      <ChartCard
        {...shared}
        name="Calls"
        kind="bars"
        values={daily?.map((record) => record.call_count) ?? []}
        bad={daily?.map((record) => record.error_count) ?? []}
        format={shortCount}
        wholeNumbers
      >
        <Count value={calls} />
        <span class="chart-errors">
          <i class="key-bad" aria-hidden="true" /> <Count value={errors} />
          {errors === 1 ? ' error' : ' errors'}
        </span>
      </ChartCard>
      <ChartCard
        {...shared}
        name="Cost"
        kind="bars"
        values={daily?.map((record) => record.total_cost_usd) ?? []}
        format={axisMoney}
      >
        <TotalCost usd={cost} calls={calls} />
      </ChartCard>
      <ChartCard
        {...shared}
        name="Average latency"
        kind="line"
        values={daily?.map(latencyOf) ?? []}
        format={axisDuration}
        restLabel="today"
      >
        <Duration value={latencyDay === undefined ? null : latencyOf(latencyDay)} />
      </ChartCard>
    </div>
  );
}

/** A day without calls leaves a gap. */
function latencyOf(record: DailyRecord): number | null {
  return knownLatency(record.avg_latency_ms);
}
