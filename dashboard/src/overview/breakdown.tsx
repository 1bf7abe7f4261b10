import { useState } from 'preact/hooks';
import type { FeatureRecord, ModelRecord, Overview } from '../../../client/src/api-types.ts';
import { roundToMicros } from '../format/money.ts';
import { Choice } from '../parts/choice.tsx';
import { knownLatency } from './known-latency.ts';
import { ShareTable } from './share-table.tsx';
import type { ShareBasis, ShareRow } from './share-row.ts';

interface BreakdownProps {
  overview: Overview | null;
  models: readonly ModelRecord[] | null;
  features: readonly FeatureRecord[] | null;
}

/** Where the calls and the money went. */
export function Breakdown({ overview, models, features }: BreakdownProps) {
  const [chosen, setChosen] = useState<ShareBasis | null>(null);
  // Money is what one comes for, unless nobody records costs.
  const basis = chosen ?? (overview?.total_cost_usd === 0 ? 'calls' : 'cost');
  const total = {
    calls: overview?.total_calls ?? 0,
    costUsd: overview?.total_cost_usd ?? 0,
  };
  const featureRows = features?.map((record) => rowOf(record.feature_name, record)) ?? null;
  return (
    <section aria-labelledby="breakdown-heading">
      <div class="section-heading">
        <h2 id="breakdown-heading">
          Where it goes <span class="muted">all time</span>
        </h2>
        <Choice
          label="Share of"
          isLabelShown
          options={[
            { value: 'cost', label: 'Cost' },
            { value: 'calls', label: 'Calls' },
          ]}
          value={basis}
          onChange={setChosen}
        />
      </div>
      <div class="breakdown">
        <ShareTable
          title="Models"
          noun="Model"
          rows={models?.map((record) => rowOf(record.model, record)) ?? null}
          total={total}
          basis={basis}
        />
        <ShareTable
          title="Features"
          noun="Feature"
          rows={featureRows}
          rest={featureRows === null ? null : restOf(featureRows, total)}
          total={total}
          basis={basis}
        />
      </div>
    </section>
  );
}

function rowOf(name: string, record: ModelRecord | FeatureRecord): ShareRow {
  return {
    name,
    calls: record.call_count,
    costUsd: record.total_cost_usd,
    latencyMs: knownLatency(record.avg_latency_ms),
    successRate: record.success_rate,
  };
}

/** What no feature was named for: all calls less those that are listed. */
function restOf(rows: readonly ShareRow[], total: Pick<ShareRow, 'calls' | 'costUsd'>) {
  const calls = total.calls - rows.reduce((sum, row) => sum + row.calls, 0);
  const costUsd = total.costUsd - rows.reduce((sum, row) => sum + row.costUsd, 0);
  // The two answers may be a moment apart, so the difference may be below 0.
  if (calls <= 0) return null;
  return {
    name: 'unlabelled',
    calls,
    costUsd: Math.max(0, roundToMicros(costUsd)),
    latencyMs: null,
    successRate: null,
  };
}
