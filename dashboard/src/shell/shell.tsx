import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { ConnectionNotice } from '../live/connection-notice.tsx';
import { OverviewView } from '../overview/overview-view.tsx';
import { useStore } from '../parts/store.ts';
import { navigation } from '../route/navigation.ts';
import type { Place } from '../route/navigation.ts';
import type { Route } from '../route/route.ts';
import { TraceView } from '../trace/trace-view.tsx';
import { TracesView } from '../traces/traces-view.tsx';
import { UsersView } from '../users/users-view.tsx';
import { ErrorBoundary } from './error-boundary.tsx';
import { Header } from './header.tsx';
import { NotFound } from './not-found.tsx';

/** What surrounds every view. */
export function Shell() {
  const place = useStore(navigation.place);
  useArrival(place);
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
  const { route, fragment, isReturn } = place;
  switch (route.kind) {
    case 'overview':
      return <OverviewView route={route} />;
    case 'users':
      return <UsersView route={route} />;
    case 'traces':
      return <TracesView route={route} fragment={fragment} isReturn={isReturn} />;
    case 'trace':
      return <TraceView key={route.id} id={route.id} />;
    case 'unknown':
      return <NotFound />;
  }
}

/**
 * A new view gets the focus at its heading; going back restores the scroll position. If only the question changes, the user stays at the
 * control that changed it.
 */
function useArrival({ fragment, route, isReturn }: Place): void {
  const last = useRef<{ fragment: string; view: string } | null>(null);
  const view = viewOf(route);
  useLayoutEffect(() => {
    if (last.current === null) return;
    if (last.current.view !== view || isReturn) scrollTo(0, navigation.scrollTarget);
  }, [fragment]);
  useEffect(() => {
    const before = last.current;
    last.current = { fragment, view };
    if (before === null) return;
    // The control itself may be gone, such as the chip of a filter that was removed.
    const isLost = document.activeElement === null || document.activeElement === document.body;
    if (before.view !== view || isLost) {
      document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
    }
  }, [fragment]);
}

/** What a user calls a page: another list page or another trace is one, another filter is not. */
function viewOf(route: Route): string {
  if (route.kind === 'trace') return `trace ${route.id}`;
  return route.kind === 'traces' ? `traces ${route.page} ${route.cursor}` : route.kind;
}

/** The fragment is the route, so the link may not change it. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
