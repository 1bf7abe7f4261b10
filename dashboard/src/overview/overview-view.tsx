import { useEffect } from 'preact/hooks';
import { EmptyState } from '../empty/empty-state.tsx';
import { utcDay } from '../format/moment.ts';
import { useLoad } from '../live/loader.ts';
import { Failure } from '../parts/failure.tsx';
import { useNow } from '../parts/now.ts';
import { LoadingWords } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { Breakdown } from './breakdown.tsx';
import { preloadCharts } from './chart-loader.ts';
import { DailySection } from './daily-section.tsx';
import { Figures } from './figures.tsx';
import { NoCostHint } from './no-cost-hint.tsx';

export function OverviewView() {
  const { pulse, reads } = useSession();
  const { overview, failure } = useStore(pulse.state);
  // At midnight the list of days changes even if no call arrives.
  const day = utcDay(useNow());
  useEffect(preloadCharts, []);
  const { state, retry } = useLoad({
    key: 'overview',
    version: overview === null ? null : `${day} ${JSON.stringify(overview)}`,
    load: async (signal) => {
      const [daily, models, features] = await Promise.all([
        reads.daily(signal),
        reads.byModel(signal),
        reads.byFeature(signal),
      ]);
      return { daily, models, features };
    },
  });
  if (overview === null && failure !== null) {
    return (
      <>
        <PageHeading title="Overview" />
        <Failure error={failure.error} onRetry={() => pulse.beatNow()} />
      </>
    );
  }
  if (overview?.total_calls === 0) return <EmptyState />;
  const rest = state.kind === 'ready' ? state.value : null;
  return (
    <>
      <PageHeading title="Overview">
        <p class="muted">All time; days start at midnight in the time zone of the team</p>
      </PageHeading>
      {overview === null && <LoadingWords />}
      <Figures overview={overview} daily={rest?.daily ?? null} />
      {overview?.total_cost_usd === 0 && <NoCostHint />}
      {state.kind === 'failed' ? (
        <Failure error={state.error} onRetry={retry} />
      ) : (
        <>
          <DailySection daily={rest?.daily ?? null} />
          <Breakdown
            overview={overview}
            models={rest?.models ?? null}
            features={rest?.features ?? null}
          />
        </>
      )}
    </>
  );
}
