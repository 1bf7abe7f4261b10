import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { TallyMark } from '../parts/icons.tsx';
import { ThemeToggle } from '../shell/theme-toggle.tsx';

/** What surrounds everything that is shown before the dashboard. */
export function SignInCard({ title, children }: { title: string; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · TraceTally`;
  }, [title]);
  return (
    <div class="sign-in">
      <header class="sign-in-bar">
        <ThemeToggle />
      </header>
      <main class="sign-in-card">
        <h1>
          <TallyMark />
          TraceTally
        </h1>
        {children}
      </main>
    </div>
  );
}
