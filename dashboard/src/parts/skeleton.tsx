interface SkeletonProps {
  /** The number of rows, if it replaces a table. */
  rows?: number;
  class?: string;
}

/** A placeholder of the same size as the content that is loading, so that the layout does not jump. */
export function Skeleton({ rows = 1, class: className = '' }: SkeletonProps) {
  return (
    <div class={`skeleton ${className}`} aria-hidden="true">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

export function LoadingWords() {
  return (
    <p class="visually-hidden" role="status">
      Loading…
    </p>
  );
}
