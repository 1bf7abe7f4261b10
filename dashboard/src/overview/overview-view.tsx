import { useEffect } from 'preact/hooks';
import type { Overview, QueryReply } from '../../../client/src/reading.ts';
import { namesListedMax } from '../api/reads.ts';
import { EmptyState } from '../empty/empty-state.tsx';
import { useQuery } from '../live/use-query.ts';
import type { Loading } from '../live/loader.ts';
import { Failure } from '../parts/failure.tsx';
import { Count, TotalCost } from '../parts/quantity.tsx';
import { LoadingWords } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { QuestionBar } from '../question/question-bar.tsx';
import { useAsked } from '../question/use-asked.ts';
import type { Asked } from '../question/use-asked.ts';
import { overviewHref, splitRoute } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { criteriaOf, hasFilters } from '../view/filters.ts';
import { localMs } from '../view/local-time.ts';
import {
  answeredWords,
  previousPeriod,
  spanParameters,
  spanWords,
} from '../view/previous-period.ts';
import type { Span } from '../view/previous-period.ts';
import { allTime } from '../view/range.ts';
import { Breakdown } from './breakdown.tsx';
import { preloadCharts } from './chart-loader.ts';
import { Figures } from './figures.tsx';
import type { Before } from './figures.tsx';
import { NoCostHint } from './no-cost-hint.tsx';
import { SeriesSection } from './series-section.tsx';
import { UncostedCalls } from './uncosted-calls.tsx';
import { useSeries } from './use-series.ts';

export function OverviewView({ route }: { route: OverviewRoute }) {
  const { pulse } = useSession();
  const { overview, failure } = useStore(pulse.state);
  const asked = useAsked(route);
  useEffect(preloadCharts, []);
  // Shares of the cost, unless no call has a cost.
  const basis = route.share ?? (overview?.total_cost_usd === 0 ? 'calls' : 'cost');
  const order = basis === 'calls' ? '-call_count' : '-total_cost_usd';
  const listed = { filter: asked.criteria, order, limit: namesListedMax } as const;
  const models = useQuery({ ...listed, groupBy: 'model' }, asked.version);
  const second = splitRoute(route);
  const filter = { ...asked.criteria, ...criteriaOf(second.question.filters) };
  const split = useQuery({ ...listed, filter, groupBy: route.split }, asked.version);
  const series = useSeries(asked, route.stack, order);
  const whole = answerOf(models);
  const before = useBefore(route, asked, whole);
  if (overview === null && failure !== null) {
    return (
      <>
        <PageHeading title="Overview" />
        <Failure error={failure.error} onRetry={() => pulse.beatNow()} />
      </>
    );
  }
  if (overview?.total_calls === 0) return <EmptyState />;
  const loads = [models, split, ...series.loads];
  const failed = loads.map(({ state }) => state).find(({ kind }) => kind === 'failed');
  return (
    <>
      <PageHeading title="Overview">
        <p class="muted">{whole !== null && comparisonWords(whole, before)}</p>
      </PageHeading>
      <QuestionBar route={route} asked={asked} />
      {whole === null && <LoadingWords />}
      {failed?.kind === 'failed' ? (
        <Failure error={failed.error} onRetry={() => loads.forEach((load) => load.retry())} />
      ) : (
        <>
          <Figures route={route} totals={whole?.totals ?? null} before={before} />
          {overview !== null && <AllTime route={route} asked={asked} overview={overview} />}
          {overview?.total_cost_usd === 0 && <NoCostHint />}
          {whole !== null && <UncostedCalls route={route} asked={asked} whole={whole} />}
          <SeriesSection
            route={route}
            range={asked.range}
            buckets={series.buckets}
            totals={whole?.totals ?? null}
            layers={series.layers}
          />
          <Breakdown route={route} basis={basis} models={whole} split={answerOf(split)} />
        </>
      )}
    </>
  );
}

function answerOf({ state }: Loading<QueryReply>): QueryReply | null {
  return state.kind === 'ready' ? state.value : null;
}

/** The same question about the period before. It is over, so it is asked again only when its end moves. */
function useBefore(route: OverviewRoute, asked: Asked, whole: QueryReply | null): Before | null {
  const span = whole === null ? null : previousPeriod(asked.range, whole, asked.nowMs);
  const filters = criteriaOf(route.question.filters);
  const loaded = useQuery(span && { filter: { ...spanParameters(span), ...filters } }, 'once');
  const reply = answerOf(loaded);
  if (reply === null || span === null || whole === null) return null;
  return { totals: reply.totals, words: localWords(span, whole.time_zone) };
}

function localWords({ fromMs, toMs }: Span, timeZone: string): string {
  return spanWords(localMs(timeZone, fromMs), localMs(timeZone, toMs));
}

function comparisonWords(whole: QueryReply, before: Before | null): string {
  const words = answeredWords(whole);
  if (words === null) return '';
  return before === null ? words : `${words}, compared with ${before.words}`;
}

interface AllTimeProps {
  route: OverviewRoute;
  asked: Asked;
  overview: Overview;
}

/** The totals of all calls, which the page knows anyway. */
function AllTime({ route, asked, overview }: AllTimeProps) {
  if (asked.range.kind === 'all' || hasFilters(route.question.filters)) return null;
  const question = { ...route.question, range: allTime };
  return (
    <p class="all-time" role="group" aria-label="All time">
      <a href={overviewHref({ ...route, question })}>All time</a>{' '}
      <TotalCost usd={overview.total_cost_usd} calls={overview.total_calls} />
      <span>
        <Count value={overview.total_calls} /> calls
      </span>
      <span>
        <Count value={overview.error_count} /> errors
      </span>
    </p>
  );
}
