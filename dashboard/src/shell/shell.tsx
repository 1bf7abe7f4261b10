import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { ConnectionNotice } from '../live/connection-notice.tsx';
import { OverviewView } from '../overview/overview-view.tsx';
import { useStore } from '../parts/store.ts';
import { navigation } from '../route/navigation.ts';
import type { Place } from '../route/navigation.ts';
import { TraceView } from '../trace/trace-view.tsx';
import { TracesView } from '../traces/traces-view.tsx';
import { ErrorBoundary } from './error-boundary.tsx';
import { Header } from './header.tsx';
import { NotFound } from './not-found.tsx';

/** What surrounds every view. */
export function Shell() {
  const place = useStore(navigation.place);
  useArrival(place.fragment);
  return (
    <>
      <a class="skip-link" href="#main" onClick={skipToMain}>
        Skip to content
      </a>
      <Header route={place.route} />
      <main id="main" class="main" tabIndex={-1}>
        <ConnectionNotice />
        <ErrorBoundary place={place.fragment}>
          <View place={place} />
        </ErrorBoundary>
      </main>
    </>
  );
}

function View({ place }: { place: Place }) {
  const { route, isReturn } = place;
  switch (route.kind) {
    case 'overview':
      return <OverviewView />;
    case 'traces':
      return <TracesView page={route.page} isReturn={isReturn} />;
    case 'trace':
      return <TraceView key={route.id} id={route.id} />;
    case 'unknown':
      return <NotFound />;
  }
}

/** A new view gets the focus at its heading; going back restores the scroll position. */
function useArrival(fragment: string): void {
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    if (isFirst.current) return;
    scrollTo(0, navigation.scrollTarget);
  }, [fragment]);
  useEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
  }, [fragment]);
}

/** The fragment is the route, so the link may not change it. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
