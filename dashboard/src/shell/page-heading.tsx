import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

interface PageHeadingProps {
  title: string;
  /** Shown next to the heading. */
  children?: ComponentChildren;
}

/** The one heading of a view, which is also the title of the tab. */
export function PageHeading({ title, children }: PageHeadingProps) {
  useEffect(() => {
    document.title = `${title} · TraceTally`;
  }, [title]);
  return (
    <div class="page-heading">
      <h1 tabIndex={-1}>{title}</h1>
      {children}
    </div>
  );
}
