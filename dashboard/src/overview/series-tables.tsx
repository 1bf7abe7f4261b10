import type { ComponentChildren } from 'preact';
import type { QueryTotals } from '../../../client/src/reading.ts';
import { columnMoney } from '../format/money.ts';
import { Choice } from '../parts/choice.tsx';
import { ColumnNames } from '../parts/column-names.tsx';
import { DownloadCsv } from '../parts/download-csv.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { Count, Duration, TotalCost } from '../parts/quantity.tsx';
import { Skeleton } from '../parts/skeleton.tsx';
import { navigation } from '../route/navigation.ts';
import { behind, measureNames, overviewHref, tracesHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { filterNames } from '../view/filters.ts';
import type { Range } from '../view/range.ts';
import { measures } from './measures.tsx';
import type { Measure } from './measures.tsx';
import { otherKey, percentiles, tokenKinds } from './series.ts';
import type { Bucket, Layer } from './series.ts';

interface SeriesTablesProps {
  route: OverviewRoute;
  buckets: readonly Bucket[];
  layers: readonly Layer[] | null;
}

/** The numbers of all charts, latest first. */
export function SeriesTables({ route, buckets, layers }: SeriesTablesProps) {
  return (
    <div class="series-tables">
      <TotalsTable route={route} buckets={buckets} />
      <div class="section-heading">
        <h3>By {filterNames[route.stack].toLowerCase()}</h3>
        <Choice
          label="Show for each"
          options={measureNames.map((value) => ({ value, label: measures[value].name }))}
          value={route.measure}
          onChange={(measure) => navigation.go(overviewHref({ ...route, measure }))}
        />
      </div>
      {layers === null ? (
        <div class="card">
          <Skeleton rows={6} class="table-skeleton" />
        </div>
      ) : (
        <GroupsTable
          route={route}
          buckets={buckets}
          layers={layers}
          measure={measures[route.measure]}
        />
      )}
    </div>
  );
}

const latencies = [
  { name: 'Average', of: (row: QueryTotals) => row.avg_latency_ms },
  ...percentiles,
] as const;

function TotalsTable({ route, buckets }: Omit<SeriesTablesProps, 'layers'>) {
  const formatCost = columnMoney(buckets.map(({ totals }) => totals.total_cost_usd));
  const latestFirst = buckets.toReversed();
  const sheet = () => ({
    header: [
      'start',
      'calls',
      'errors',
      'cost_usd',
      ...latencies.map(({ name }) => `${name.toLowerCase()}_latency_ms`),
      ...tokenKinds.map(({ name }) => `${name.toLowerCase().replace(' ', '_')}_tokens`),
    ],
    rows: latestFirst.map(({ start, totals }) => [
      start,
      totals.call_count,
      totals.error_count,
      totals.total_cost_usd,
      ...latencies.map(({ of }) => of(totals)),
      ...tokenKinds.map(({ of }) => of(totals)),
    ]),
  });
  return (
    <>
      <div class="table-tools">
        <DownloadCsv name="Over time" sheet={sheet} />
      </div>
      <div class="card table-card" tabIndex={0} role="region" aria-label="All series">
        <table class="table series-table">
          <caption class="visually-hidden">
            Calls, errors, cost, latency and tokens over time
          </caption>
          <thead>
            <tr>
              <ColumnNames
                texts={['Time']}
                numbers={[
                  'Calls',
                  'Errors',
                  'Cost',
                  ...latencies.map(({ name }) => `${name} latency`),
                  ...tokenKinds.map(({ name }) => `${name} tokens`),
                ]}
              />
            </tr>
          </thead>
          <tbody>
            {latestFirst.map(({ start, label, range, totals }) => (
              <tr key={start}>
                <th scope="row">
                  <time dateTime={start}>{label}</time>
                </th>
                <td class="number">
                  <CallsLink
                    href={tracesHref({ question: behind(route, {}, range) })}
                    count={totals.call_count}
                  >
                    <Count value={totals.call_count} />
                  </CallsLink>
                </td>
                <td class="number">
                  <CallsLink
                    href={tracesHref({ question: behind(route, { status: 'error' }, range) })}
                    count={totals.error_count}
                  >
                    <Count value={totals.error_count} />
                  </CallsLink>
                </td>
                <td class="number">
                  <TotalCost
                    usd={totals.total_cost_usd}
                    calls={totals.call_count}
                    format={formatCost}
                  />
                </td>
                {latencies.map(({ name, of }) => (
                  <td key={name} class="number">
                    <Duration value={of(totals)} />
                  </td>
                ))}
                {tokenKinds.map(({ name, of }) => (
                  <td key={name} class="number">
                    <Count value={of(totals)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface CallsLinkProps {
  href: string;
  /** Without any, there is nothing to lead to. */
  count: number;
  children: ComponentChildren;
}

function CallsLink({ href, count, children }: CallsLinkProps) {
  if (count === 0) return <>{children}</>;
  return (
    <a class="figure-link" href={href}>
      {children}
    </a>
  );
}

interface GroupsTableProps {
  route: OverviewRoute;
  buckets: readonly Bucket[];
  layers: readonly Layer[];
  measure: Measure;
}

function GroupsTable({ route, buckets, layers, measure }: GroupsTableProps) {
  const field = filterNames[route.stack].toLowerCase();
  const order = buckets.map((_bucket, index) => index).toReversed();
  const title = `${measure.name} by ${field}`;
  const parts = layers.flatMap((layer) => layer.parts);
  const formatCost = columnMoney(parts.map((part) => part.total_cost_usd));
  const sheet = () => ({
    header: ['start', ...layers.map(({ name }) => name)],
    rows: order.map((index) => [
      buckets[index]?.start ?? '',
      ...layers.map((layer) => {
        const part = layer.parts[index];
        return part === undefined ? null : measure.of(part);
      }),
    ]),
  });
  return (
    <>
      <div class="table-tools">
        <DownloadCsv name={title} sheet={sheet} />
      </div>
      <div class="card table-card" tabIndex={0} role="region" aria-label={title}>
        <table class="table series-table">
          <caption class="visually-hidden">{title} over time</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {layers.map((layer) => (
                <th key={layer.key} scope="col" class="number group-name">
                  {layer.key === otherKey ? (
                    layer.name
                  ) : (
                    <NameLink route={route} field={route.stack} value={layer.value ?? null} />
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.map((index) => (
              <tr key={buckets[index]?.start}>
                <th scope="row">{buckets[index]?.label}</th>
                {layers.map((layer) => (
                  <td key={layer.key} class="number">
                    <Part
                      route={route}
                      measure={measure}
                      layer={layer}
                      range={buckets[index]?.range}
                      totals={layer.parts[index]}
                      formatCost={formatCost}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface PartProps {
  route: OverviewRoute;
  measure: Measure;
  layer: Layer;
  range: Range | undefined;
  totals: QueryTotals | undefined;
  formatCost: (usd: number) => string;
}

/** A layer of one bar. All others together have no link, since they cannot be filtered by. */
function Part({ route, measure, layer, range, totals, formatCost }: PartProps) {
  if (totals === undefined) return null;
  const shown = measure.show([totals], formatCost);
  if (layer.key === otherKey) return <>{shown}</>;
  const more = { ...measure.filter, [route.stack]: layer.value ?? null };
  return (
    <CallsLink
      href={tracesHref({ question: behind(route, more, range) })}
      count={more.status === 'error' ? totals.error_count : totals.call_count}
    >
      {shown}
    </CallsLink>
  );
}
