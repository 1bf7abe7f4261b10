import { useState } from 'preact/hooks';
import type { FeatureRecord, ModelRecord, Overview } from '../../../client/src/api-types.ts';
import { namesListedMax } from '../api/reads.ts';
import { Choice } from '../parts/choice.tsx';
import { knownLatency } from './known-latency.ts';
import { restOf } from './share-row.ts';
import type { ShareBasis, ShareRow, ShareTotal } from './share-row.ts';
import { ShareTable } from './share-table.tsx';

interface BreakdownProps {
  overview: Overview | null;
  models: readonly ModelRecord[] | null;
  features: readonly FeatureRecord[] | null;
}

/** Cost and calls by model and by feature. */
export function Breakdown({ overview, models, features }: BreakdownProps) {
  const [chosen, setChosen] = useState<ShareBasis | null>(null);
  // Shares of the cost, unless no call has a cost.
  const basis = chosen ?? (overview?.total_cost_usd === 0 ? 'calls' : 'cost');
  const total = {
    calls: overview?.total_calls ?? 0,
    costUsd: overview?.total_cost_usd ?? 0,
  };
  const modelRows = models?.map((record) => rowOf(record.model, record)) ?? null;
  const featureRows = features === null ? null : rowsOfFeatures(features, total);
  return (
    <section aria-labelledby="breakdown-heading">
      <div class="section-heading">
        <h2 id="breakdown-heading">
          Breakdown <span class="muted">all time</span>
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
          others={modelRows === null ? null : otherModels(modelRows, total)}
          total={total}
          basis={basis}
        />
        <ShareTable
          title="Features"
          noun="Feature"
          rows={featureRows}
          others={featureRows === null ? null : otherFeatures(featureRows, total)}
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
    restTitle: null,
  };
}

/** The API does not list calls without a feature. If it lists every feature, all other calls have none. */
function rowsOfFeatures(features: readonly FeatureRecord[], total: ShareTotal): ShareRow[] {
  const rows = features.map((record) => rowOf(record.feature_name, record));
  if (features.length >= namesListedMax) return rows;
  const restTitle = 'Calls without a feature name';
  const unlabelled = restOf(rows, total, { name: 'unlabelled', restTitle });
  return unlabelled === null ? rows : [...rows, unlabelled];
}

/** Null if every model is listed. */
function otherModels(rows: readonly ShareRow[], total: ShareTotal): ShareRow | null {
  if (rows.length < namesListedMax) return null;
  const restTitle = `Calls of all models except the ${namesListedMax} with the most calls`;
  return restOf(rows, total, { name: 'other', restTitle });
}

/** Null if every feature is listed. */
function otherFeatures(rows: readonly ShareRow[], total: ShareTotal): ShareRow | null {
  if (rows.length < namesListedMax) return null;
  const restTitle = `Calls without a feature name, and calls of all features except the ${namesListedMax} with the most calls`;
  return restOf(rows, total, { name: 'other and unlabelled', restTitle });
}
