import { useEffect, useRef, useState } from 'preact/hooks';
import { tracesPerPage } from '../api/reads.ts';
import { counted } from '../format/count.ts';
import { exactTime } from '../format/moment.ts';
import { useLoad } from '../live/loader.ts';
import { useQuery } from '../live/use-query.ts';
import { DownloadCsv } from '../parts/download-csv.tsx';
import { Failure } from '../parts/failure.tsx';
import { refreshNow } from '../parts/now.ts';
import { LoadingWords, Skeleton } from '../parts/skeleton.tsx';
import { useAsked } from '../question/use-asked.ts';
import type { Asked } from '../question/use-asked.ts';
import { hrefOf, tracesHref } from '../route/route.ts';
import type { TracesRoute } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { noFilters } from '../view/filters.ts';
import { findTraces } from './finding.ts';
import type { Finding } from './finding.ts';
import { NewTraces } from './new-traces.tsx';
import { sheetOfTraces } from './trace-sheet.ts';
import { TraceTable } from './trace-table.tsx';
import { TracesBar } from './traces-bar.tsx';
import type { TracesViewProps } from './traces-view.tsx';
import { useReading } from './use-reading.ts';

/** The traces that match the range, the filters and the search, newest first. */
export function FoundTracesView({ route, fragment, isReturn }: TracesViewProps) {
  const { cursor, text } = route;
  const session = useSession();
  const asked = useAsked(route);
  const calls = useCalls(asked, text);
  const last = session.lastList;
  const [step, setStep] = useState<{ fragment: string; finding: Finding } | null>(null);
  const progress = step?.fragment === fragment ? step.finding : null;
  const { state, refresh, retry } = useLoad({
    key: JSON.stringify([asked.criteria, text, cursor]),
    initial: isReturn && last?.fragment === fragment && last.kind === 'found' ? last.list : null,
    load: (signal) => {
      const filter = { ...asked.criteria, ...(text !== '' && { q: text }) };
      return findTraces(session.reads, filter, cursor, signal, (finding) =>
        setStep({ fragment, finding }),
      );
    },
  });
  const list = state.kind === 'ready' ? state.value : null;
  useEffect(() => {
    if (list === null) return;
    session.lastList = { kind: 'found', fragment, list };
    refreshNow();
  }, [list]);

  const table = useRef<HTMLDivElement>(null);
  const isReading = useReading(table);
  const arrived = useArrived(calls, list, cursor === null && text === '');
  useEffect(() => {
    if (arrived > 0 && !isReading) refresh();
  }, [arrived, isReading]);

  const shown = list ?? progress;
  return (
    <>
      <PageHeading title="Traces">
        <p class="muted" aria-live="polite">
          {calls === null ? 'Newest first' : `${counted(calls, 'trace')}, newest first`}
        </p>
        {shown !== null && shown.traces.length > 0 && (
          <div class="page-tools">
            <DownloadCsv name="Traces" sheet={() => sheetOfTraces(shown.traces)} />
          </div>
        )}
      </PageHeading>
      <TracesBar route={route} asked={asked} />
      {isReading && arrived > 0 && <NewTraces count={arrived} onShow={refresh} />}
      {state.kind === 'failed' && <Failure error={state.error} onRetry={retry} />}
      {state.kind === 'loading' && progress === null && (
        <>
          <LoadingWords />
          <div class="card">
            <Skeleton rows={16} class="table-skeleton" />
          </div>
        </>
      )}
      {shown !== null && shown.traces.length > 0 && (
        <div ref={table} class="card table-card trace-card">
          <TraceTable key={fragment} route={route} traces={shown.traces} />
        </div>
      )}
      {shown !== null && state.kind !== 'failed' && (
        <SearchEnd route={route} finding={shown} isSearching={state.kind === 'loading'} />
      )}
    </>
  );
}

/** How many traces match; null if that is not known, as with a search in the texts. */
function useCalls({ criteria, version }: Asked, text: string): number | null {
  const { state } = useQuery(text === '' ? { filter: criteria } : null, version);
  return state.kind === 'ready' ? state.value.totals.call_count : null;
}

/** How many of them are newer than the list. */
function useArrived(calls: number | null, list: Finding | null, isLive: boolean): number {
  const known = useRef<{ list: Finding | null; calls: number | null }>({ list: null, calls: null });
  if (known.current.list !== list) known.current = { list, calls };
  known.current.calls ??= calls;
  if (!isLive || list === null || calls === null) return 0;
  return Math.max(0, calls - (known.current.calls ?? calls));
}

interface SearchEndProps {
  route: TracesRoute;
  finding: Finding;
  isSearching: boolean;
}

/** What comes after the last row: more traces, more to search, or nothing. */
function SearchEnd({ route, finding, isSearching }: SearchEndProps) {
  const { traces, nextCursor, searchedTo } = finding;
  const isFirst = route.cursor === null;
  // A full page says where it ends by its last row.
  const isFull = traces.length >= tracesPerPage;
  const back = searchedTo === null || isFull ? null : exactTime(Date.parse(searchedTo));
  const isEmpty = traces.length === 0;
  return (
    <nav class="pager" aria-label="Pages">
      <p class="pager-words muted" role="status">
        {isSearching && `Searching… back to ${back ?? 'now'}`}
        {!isSearching && nextCursor !== null && back !== null && `Searched back to ${back}.`}
        {!isSearching && nextCursor === null && isEmpty && isFirst && 'No trace matches.'}
        {!isSearching && nextCursor === null && !(isEmpty && isFirst) && 'No more traces.'}
      </p>
      <div class="pager-steps">
        {!isFirst && (
          <a class="button" href={tracesHref({ ...route, cursor: null })}>
            <span aria-hidden="true">«</span> Newest
          </a>
        )}
        {!isSearching && nextCursor !== null && (
          <a class="button" href={tracesHref({ ...route, cursor: nextCursor })}>
            {isEmpty ? 'Search further back' : 'Older'} <span aria-hidden="true">›</span>
          </a>
        )}
        {isEmpty && !isSearching && (
          <a
            class="button"
            href={hrefOf({ ...route, text: '' }, { range: null, filters: noFilters })}
          >
            Show all traces
          </a>
        )}
      </div>
    </nav>
  );
}
