import { LiveControl } from '../live/live-control.tsx';
import { SignOutIcon, TallyMark } from '../parts/icons.tsx';
import { overviewHref, tracesHref } from '../route/route.ts';
import type { Route } from '../route/route.ts';
import { gate } from '../session/gate.ts';
import { useSession } from '../session/session.ts';
import { ThemeToggle } from './theme-toggle.tsx';

export function Header({ route }: { route: Route }) {
  const { team } = useSession();
  const isInTraces = route.kind === 'traces' || route.kind === 'trace';
  return (
    <header class="header">
      <div class="header-inner">
        <a class="brand" href={overviewHref} aria-label="TraceTally">
          <TallyMark />
          <span class="brand-name">TraceTally</span>
        </a>
        <nav class="nav" aria-label="Main">
          <a href={overviewHref} aria-current={route.kind === 'overview' ? 'page' : undefined}>
            Overview
          </a>
          <a href={tracesHref()} aria-current={isInTraces ? 'page' : undefined}>
            Traces
          </a>
        </nav>
        <p class="team" title={`Team ${team.name}`}>
          <span class="visually-hidden">Team </span>
          {team.name}
        </p>
        <div class="header-tools">
          <LiveControl />
          <ThemeToggle />
          <button
            type="button"
            class="button icon quiet"
            aria-label="Sign out"
            title="Sign out"
            onClick={() => gate.signOut()}
          >
            <SignOutIcon />
          </button>
        </div>
      </div>
    </header>
  );
}
