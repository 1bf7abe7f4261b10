import type { QueryTotals } from '../../../client/src/reading.ts';
import { exactCount, shortCount } from '../format/count.ts';
import { axisDuration, exactDuration } from '../format/duration.ts';
import { NameLink } from '../parts/name-link.tsx';
import { Count, Duration } from '../parts/quantity.tsx';
import type { OverviewRoute } from '../route/route.ts';
import type { FilterField } from '../view/filters.ts';
import { ChartCard } from './chart-card.tsx';
import type { ChartCardProps } from './chart-card.tsx';
import type { Measure } from './measures.tsx';
import { noTotals, otherKey, percentiles, sum, tokenKinds } from './series.ts';
import type { Bucket, Layer } from './series.ts';

/** What all charts of the section share. */
export interface SharedProps {
  route: OverviewRoute;
  rangeLabel: string;
  buckets: readonly Bucket[] | null;
  totals: QueryTotals | null;
  lookedAt: number | null;
  layer: number | null;
  onLookAt: ChartCardProps['onLookAt'];
  /** Opens the traces of a bucket that also match these values. */
  onOpen: (bucket: number, more: Partial<Record<FilterField, string | null>>) => void;
}

interface StackChartProps extends SharedProps {
  measure: Measure;
  layers: readonly Layer[] | null;
}

export const stackColours = [
  'series-1',
  'series-2',
  'series-3',
  'series-4',
  'series-5',
  'series-6',
] as const;

function colourOf(layer: Layer, index: number): string {
  return layer.key === otherKey ? 'series-other' : (stackColours[index] ?? 'series-other');
}

/** Cost, calls or errors, stacked by the chosen field. */
export function StackChart({ measure, layers, ...shared }: StackChartProps) {
  const { route, buckets, lookedAt, rangeLabel } = shared;
  const known = layers ?? [];
  const layer = shared.layer === null ? undefined : known[shared.layer];
  // All others together cannot be filtered by, so a click there means the whole bar.
  const named = layer?.key === otherKey ? undefined : layer;
  const rows = (parts: readonly QueryTotals[]): readonly QueryTotals[] =>
    lookedAt === null ? parts : parts.slice(lookedAt, lookedAt + 1);
  const all = buckets?.map(({ totals }) => totals) ?? [];
  const at = lookedAt === null ? rangeLabel : (buckets?.[lookedAt]?.label ?? '');
  return (
    <ChartCard
      {...shared}
      name={measure.name}
      kind="stack"
      format={measure.format}
      wholeNumbers={measure.wholeNumbers}
      buckets={layers === null ? null : buckets}
      layers={known.map(({ parts }) => parts.map(measure.of))}
      layer={named === undefined ? null : shared.layer}
      legend={known.map((one, index) => ({
        key: one.key,
        colour: colourOf(one, index),
        name: <LayerName route={route} layer={one} />,
        value: measure.show(rows(one.parts)),
      }))}
      valueLabel={named === undefined ? at : `${at}, ${named.name}`}
      value={measure.show(rows(named?.parts ?? all))}
      words={(bucket) =>
        [
          `${buckets?.[bucket]?.label}: ${measure.exact(measure.of(all[bucket] ?? noTotals))}`,
          ...known
            .map((one) => ({ name: one.name, value: measure.of(one.parts[bucket] ?? noTotals) }))
            .filter(({ value }) => value > 0)
            .map(({ name, value }) => `${name} ${measure.exact(value)}`),
        ].join('; ')
      }
      onOpen={(bucket, index) => {
        const opened = index === null ? undefined : known[index];
        const isNamed = opened !== undefined && opened.key !== otherKey;
        const group = isNamed ? { [route.stack]: opened.value ?? null } : {};
        shared.onOpen(bucket, { ...measure.filter, ...group });
      }}
    />
  );
}

function LayerName({ route, layer }: { route: OverviewRoute; layer: Layer }) {
  if (layer.key === otherKey) return <span class="clipped unset">{layer.name}</span>;
  return <NameLink route={route} field={route.stack} value={layer.value ?? null} />;
}

/** Half, 95 % and 99 % of the calls are at most this slow. */
export function LatencyChart(shared: SharedProps) {
  const { buckets, lookedAt, totals, rangeLabel } = shared;
  const row = lookedAt === null ? totals : (buckets?.[lookedAt]?.totals ?? null);
  const rows = buckets?.map((bucket) => bucket.totals) ?? [];
  return (
    <ChartCard
      {...shared}
      name="Latency"
      kind="lines"
      format={axisDuration}
      layers={percentiles.map(({ of }) => rows.map(of))}
      legend={percentiles.map(({ name, of }, index) => ({
        key: name,
        name,
        colour: ['series-2', 'series-1', 'series-4'][index] ?? 'series-1',
        value: <Duration value={row === null ? null : of(row)} />,
      }))}
      valueLabel={`${lookedAt === null ? rangeLabel : (buckets?.[lookedAt]?.label ?? '')}, p95`}
      value={<Duration value={row?.p95_latency_ms ?? null} />}
      words={(bucket) => {
        const totalsThere = rows[bucket];
        const values = percentiles.map(({ name, of }) => {
          const ms = totalsThere === undefined ? null : of(totalsThere);
          return `${name} ${ms === null ? 'not known' : exactDuration(ms)}`;
        });
        return `${buckets?.[bucket]?.label}: ${values.join('; ')}`;
      }}
      onOpen={(bucket) => shared.onOpen(bucket, {})}
    />
  );
}

export function TokensChart(shared: SharedProps) {
  const { buckets, lookedAt, rangeLabel } = shared;
  const rows = buckets?.map(({ totals }) => totals) ?? [];
  const shown = lookedAt === null ? rows : rows.slice(lookedAt, lookedAt + 1);
  const total = (of: (row: QueryTotals) => number): number => sum(shown.map(of));
  return (
    <ChartCard
      {...shared}
      layer={null}
      name="Tokens"
      kind="stack"
      format={shortCount}
      wholeNumbers
      layers={tokenKinds.map(({ of }) => rows.map(of))}
      legend={tokenKinds.map(({ name, of }, index) => ({
        key: name,
        name,
        colour: ['series-1', 'series-6', 'series-3'][index] ?? 'series-1',
        value: <Count value={total(of)} />,
      }))}
      valueLabel={lookedAt === null ? rangeLabel : (buckets?.[lookedAt]?.label ?? '')}
      value={<Count value={sum(tokenKinds.map(({ of }) => total(of)))} />}
      words={(bucket) => {
        const there = rows[bucket];
        const values = tokenKinds.map(
          ({ name, of }) => `${name} ${exactCount(there === undefined ? 0 : of(there))}`,
        );
        return `${buckets?.[bucket]?.label}: ${values.join('; ')}`;
      }}
      onOpen={(bucket) => shared.onOpen(bucket, {})}
    />
  );
}
