import { useEffect } from 'preact/hooks';
import { LiveControl } from '../live/live-control.tsx';
import { SignOutIcon, TallyMark } from '../parts/icons.tsx';
import { homeHref, overviewHref, tracesHref, usersHref } from '../route/route.ts';
import type { Route } from '../route/route.ts';
import { gate } from '../session/gate.ts';
import { useSession } from '../session/session.ts';
import { ThemeToggle } from './theme-toggle.tsx';

export function Header({ route }: { route: Route }) {
  const session = useSession();
  const { team } = session;
  // The range and the filters stay the same from view to view. A trace has none, so it keeps those of the view before.
  const question = 'question' in route ? route.question : session.question;
  useEffect(() => {
    session.question = question;
  }, [question]);
  const isInTraces = route.kind === 'traces' || route.kind === 'trace';
  return (
    <header class="header">
      <div class="header-inner">
        <a class="brand" href={homeHref} aria-label="TraceTally">
          <TallyMark />
          <span class="brand-name">TraceTally</span>
        </a>
        <nav class="nav" aria-label="Main">
          <a
            href={overviewHref({ question })}
            aria-current={route.kind === 'overview' ? 'page' : undefined}
          >
            Overview
          </a>
          <a
            href={usersHref({ question })}
            aria-current={route.kind === 'users' ? 'page' : undefined}
          >
            Users
          </a>
          <a href={tracesHref({ question })} aria-current={isInTraces ? 'page' : undefined}>
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
