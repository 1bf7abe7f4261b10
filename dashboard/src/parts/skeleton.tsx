interface SkeletonProps {
  /** Where it stands for rows of a table. */
  rows?: number;
  class?: string;
}

/** The place of something that is on its way, as large as it will be, so that nothing jumps. */
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
