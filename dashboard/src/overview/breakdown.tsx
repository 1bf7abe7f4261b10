import { useState } from 'preact/hooks';
import type { FeatureRecord, ModelRecord, Overview } from '../../../client/src/api-types.ts';
import { namesListedMax } from '../api/reads.ts';
import { Choice } from '../parts/choice.tsx';
import { knownLatency } from './known-latency.ts';
import { restOf } from './share-row.ts';
import type { RestRow, ShareBasis, ShareRow, ShareTotal } from './share-row.ts';
import { ShareTable } from './share-table.tsx';

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
  const modelRows = models?.map((record) => rowOf(record.model, record)) ?? null;
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
          rows={modelRows}
          rest={modelRows === null ? null : otherModels(modelRows, total)}
          total={total}
          basis={basis}
        />
        <ShareTable
          title="Features"
          noun="Feature"
          rows={featureRows}
          rest={featureRows === null ? null : otherFeatures(featureRows, total)}
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

/** Null if every model is listed. */
function otherModels(rows: readonly ShareRow[], total: ShareTotal): RestRow | null {
  if (rows.length < namesListedMax) return null;
  const title = `Calls of all models but the ${namesListedMax} with the most calls`;
  return restOf(rows, total, { name: 'other', title });
}

/** Calls without a feature are in no row. */
function otherFeatures(rows: readonly ShareRow[], total: ShareTotal): RestRow | null {
  if (rows.length < namesListedMax) {
    return restOf(rows, total, { name: 'unlabelled', title: 'Calls without a feature name' });
  }
  const title = `Calls without a feature name, and of all features but the ${namesListedMax} with the most calls`;
  return restOf(rows, total, { name: 'other and unlabelled', title });
}
