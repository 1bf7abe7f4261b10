import { useState } from 'preact/hooks';
import type { QueryTotals } from '../../../client/src/reading.ts';
import { columnMoney } from '../format/money.ts';
import { Choice } from '../parts/choice.tsx';
import { DownloadCsv } from '../parts/download-csv.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { Count, Duration, TotalCost } from '../parts/quantity.tsx';
import { Skeleton } from '../parts/skeleton.tsx';
import { behind, tracesHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { filterNames } from '../view/filters.ts';
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
  const [name, setName] = useState<Measure['name']>('Cost');
  const measure = measures.find((one) => one.name === name) ?? measures[0];
  return (
    <div class="series-tables">
      <TotalsTable route={route} buckets={buckets} />
      <div class="section-heading">
        <h3>By {filterNames[route.stack].toLowerCase()}</h3>
        <Choice
          label="Show for each"
          options={measures.map((one) => ({ value: one.name, label: one.name }))}
          value={name}
          onChange={setName}
        />
      </div>
      {layers === null || measure === undefined ? (
        <div class="card">
          <Skeleton rows={6} class="table-skeleton" />
        </div>
      ) : (
        <GroupsTable route={route} buckets={buckets} layers={layers} measure={measure} />
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
              <th scope="col">Time</th>
              <th scope="col" class="number">
                Calls
              </th>
              <th scope="col" class="number">
                Errors
              </th>
              <th scope="col" class="number">
                Cost
              </th>
              {latencies.map(({ name }) => (
                <th key={name} scope="col" class="number">
                  {name} latency
                </th>
              ))}
              {tokenKinds.map(({ name }) => (
                <th key={name} scope="col" class="number">
                  {name} tokens
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {latestFirst.map(({ start, label, range, totals }) => (
              <tr key={start}>
                <th scope="row">
                  <time dateTime={start}>{label}</time>
                </th>
                <td class="number">
                  <a class="figure-link" href={tracesHref({ question: behind(route, {}, range) })}>
                    <Count value={totals.call_count} />
                  </a>
                </td>
                <td class="number">
                  <ErrorsLink route={route} bucket={{ range, totals }} />
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

interface ErrorsLinkProps {
  route: OverviewRoute;
  bucket: Pick<Bucket, 'range' | 'totals'>;
}

function ErrorsLink({ route, bucket: { range, totals } }: ErrorsLinkProps) {
  const count = <Count value={totals.error_count} />;
  if (totals.error_count === 0) return count;
  const question = behind(route, { status: 'error' }, range);
  return (
    <a class="figure-link" href={tracesHref({ question })}>
      {count}
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
                    {measure.show(layer.parts.slice(index, index + 1), formatCost)}
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
