import { useState } from 'preact/hooks';
import type { QueryTotals } from '../../../client/src/reading.ts';
import { Choice } from '../parts/choice.tsx';
import { navigation } from '../route/navigation.ts';
import { behind, measureNames, overviewHref, stackFields, tracesHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { rangeName } from '../question/range-picker.tsx';
import { filterNames } from '../view/filters.ts';
import type { Range } from '../view/range.ts';
import { measures } from './measures.tsx';
import { LatencyChart, StackChart, TokensChart } from './series-charts.tsx';
import type { SharedProps } from './series-charts.tsx';
import { SeriesTables } from './series-tables.tsx';
import type { Bucket, Layer } from './series.ts';

export interface SeriesSectionProps {
  route: OverviewRoute;
  range: Range;
  /** Null while they are loading. */
  buckets: readonly Bucket[] | null;
  totals: QueryTotals | null;
  layers: readonly Layer[] | null;
}

const intervalHeading = 'Over time';

/** The range, bucket by bucket, as charts or as tables. */
export function SeriesSection(props: SeriesSectionProps) {
  const { route, range, buckets, totals, layers } = props;
  const go = (wishes: Partial<OverviewRoute>): void =>
    navigation.go(overviewHref({ ...route, ...wishes }));
  return (
    <section aria-labelledby="series-heading">
      <div class="section-heading">
        <h2 id="series-heading">
          {intervalHeading} <span class="muted">{rangeName(range)}</span>
        </h2>
        <div class="section-tools">
          <Choice
            label="Stacked by"
            isLabelShown
            options={stackFields.map((value) => ({ value, label: filterNames[value] }))}
            value={route.stack}
            onChange={(stack) => go({ stack })}
          />
          <Choice
            label="Show the series as"
            options={[
              { value: 'charts', label: 'Charts' },
              { value: 'table', label: 'Table' },
            ]}
            value={route.form}
            onChange={(form) => go({ form })}
          />
        </div>
      </div>
      {route.form === 'table' && buckets !== null ? (
        <SeriesTables route={route} buckets={buckets} layers={layers} />
      ) : (
        <Charts route={route} range={range} buckets={buckets} totals={totals} layers={layers} />
      )}
    </section>
  );
}

interface LookedAt {
  bucket: number;
  chart: string;
  layer: number | null;
}

function Charts({ route, range, buckets, totals, layers }: SeriesSectionProps) {
  // A bucket is selected in all charts at once.
  const [looked, setLooked] = useState<LookedAt | null>(null);
  const bucket = looked === null ? undefined : buckets?.[looked.bucket];
  const shared = (chart: string): SharedProps => ({
    route,
    rangeLabel: rangeName(range),
    buckets,
    totals,
    lookedAt: bucket === undefined || looked === null ? null : looked.bucket,
    layer: looked?.chart === chart ? looked.layer : null,
    onLookAt: (at, layer) => setLooked(at === null ? null : { bucket: at, chart, layer }),
    onOpen: (at, more) => {
      const target = buckets?.[at];
      if (target === undefined) return;
      navigation.go(tracesHref({ question: behind(route, more, target.range) }));
    },
  });
  return (
    <>
      <div class="charts">
        {measureNames.map((name) => (
          <StackChart key={name} {...shared(name)} measure={measures[name]} layers={layers} />
        ))}
      </div>
      <div class="charts two">
        <LatencyChart {...shared('Latency')} />
        <TokensChart {...shared('Tokens')} />
      </div>
    </>
  );
}
