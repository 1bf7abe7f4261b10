import { useEffect, useRef } from 'preact/hooks';
import { tracesPerPage } from '../api/reads.ts';
import { EmptyState } from '../empty/empty-state.tsx';
import { counted } from '../format/count.ts';
import { useLoad } from '../live/loader.ts';
import { DownloadCsv } from '../parts/download-csv.tsx';
import { Failure } from '../parts/failure.tsx';
import { refreshNow } from '../parts/now.ts';
import { LoadingWords, Skeleton } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { tracesHref } from '../route/route.ts';
import { useAsked } from '../question/use-asked.ts';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { NewTraces } from './new-traces.tsx';
import { Pager } from './pager.tsx';
import { sheetOfTraces } from './trace-sheet.ts';
import { TraceTable } from './trace-table.tsx';
import { TracesBar } from './traces-bar.tsx';
import type { TracesViewProps } from './traces-view.tsx';
import { useReading } from './use-reading.ts';

/** All traces, on numbered pages. */
export function PagedTraces({ route, fragment, isReturn }: TracesViewProps) {
  const { page } = route;
  const session = useSession();
  const asked = useAsked(route);
  const { overview } = useStore(session.pulse.state);
  const last = session.lastList;
  const { state, refresh, retry } = useLoad({
    key: `page ${page}`,
    initial: isReturn && last?.fragment === fragment && last.kind === 'paged' ? last.list : null,
    load: (signal) => session.reads.tracePage(page, signal),
  });
  const list = state.kind === 'ready' ? state.value : null;
  useEffect(() => {
    if (list === null) return;
    session.lastList = { kind: 'paged', fragment, list };
    refreshNow();
  }, [list]);

  const table = useRef<HTMLDivElement>(null);
  const isReading = useReading(table);
  // Only the first page is live: on the others every new trace would push all rows down.
  const isEmpty = list?.total === 0;
  const isLive = list !== null && overview !== null && (page === 1 || isEmpty);
  const arrived = isLive ? Math.max(0, overview.total_calls - list.total) : 0;
  useEffect(() => {
    if (arrived > 0 && (isEmpty || !isReading)) refresh();
  }, [arrived, isEmpty, isReading]);

  const showNew = (): void => {
    refresh();
    scrollTo({ top: 0 });
    document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
  };

  if (isEmpty) return <EmptyState />;
  return (
    <>
      <PageHeading title="Traces">
        {list !== null && (
          <>
            <p class="muted">{counted(list.total, 'trace')}, newest first</p>
            <div class="page-tools">
              <DownloadCsv name="Traces" sheet={() => sheetOfTraces(list.traces)} />
            </div>
          </>
        )}
      </PageHeading>
      <TracesBar route={route} asked={asked} />
      {isReading && arrived > 0 && <NewTraces count={arrived} onShow={showNew} />}
      {state.kind === 'failed' && <Failure error={state.error} onRetry={retry} />}
      {state.kind === 'loading' && (
        <>
          <LoadingWords />
          <div class="card">
            <Skeleton rows={16} class="table-skeleton" />
          </div>
        </>
      )}
      {list !== null && list.traces.length === 0 && <PastTheEnd total={list.total} page={page} />}
      {list !== null && list.traces.length > 0 && (
        <>
          <div ref={table} class="card table-card trace-card">
            <TraceTable key={page} route={route} traces={list.traces} />
          </div>
          <Pager page={page} pages={Math.ceil(list.total / tracesPerPage)} total={list.total} />
        </>
      )}
    </>
  );
}

function PastTheEnd({ total, page }: { total: number; page: number }) {
  const pages = Math.ceil(total / tracesPerPage);
  return (
    <div class="failure">
      <h2>There is no page {page}</h2>
      <p>
        The last page is <a href={tracesHref({ page: pages })}>page {pages}</a>.
      </p>
    </div>
  );
}
