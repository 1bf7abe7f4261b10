import type { QueryReply } from '../../../client/src/reading.ts';
import { Choice } from '../parts/choice.tsx';
import { navigation } from '../route/navigation.ts';
import { overviewHref, splitFields } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { filterNames } from '../view/filters.ts';
import { othersOf, rowsOf } from './share-row.ts';
import type { ShareBasis } from './share-row.ts';
import { ShareTable } from './share-table.tsx';

interface BreakdownProps {
  route: OverviewRoute;
  basis: ShareBasis;
  /** Null while they are loading. */
  models: QueryReply | null;
  split: QueryReply | null;
}

const plurals = {
  model: 'Models',
  feature_name: 'Features',
  environment: 'Environments',
  provider: 'Providers',
  error_type: 'Error types',
} as const;

/** Cost and calls by model, and by a second field. */
export function Breakdown({ route, basis, models, split }: BreakdownProps) {
  const go = (wishes: Partial<OverviewRoute>): void =>
    navigation.go(overviewHref({ ...route, ...wishes }));
  return (
    <section aria-labelledby="breakdown-heading">
      <div class="section-heading">
        <h2 id="breakdown-heading">Breakdown</h2>
        <div class="section-tools">
          <Choice
            label="Second table"
            options={splitFields.map((value) => ({ value, label: filterNames[value] }))}
            value={route.split}
            onChange={(field) => go({ split: field })}
          />
          <Choice
            label="Share of"
            isLabelShown
            options={[
              { value: 'cost', label: 'Cost' },
              { value: 'calls', label: 'Calls' },
            ]}
            value={basis}
            onChange={(share) => go({ share })}
          />
        </div>
      </div>
      <div class="breakdown">
        {[['model', models] as const, [route.split, split] as const].map(([field, reply]) => (
          <ShareTable
            key={field}
            title={plurals[field]}
            route={route}
            field={field}
            rows={reply && rowsOf(reply, field)}
            others={reply && othersOf(reply)}
            total={{
              calls: reply?.totals.call_count ?? 0,
              costUsd: reply?.totals.total_cost_usd ?? 0,
            }}
            basis={basis}
          />
        ))}
      </div>
    </section>
  );
}
