import { failureWords } from '../api/failure-words.ts';

interface FailureProps {
  error: unknown;
  onRetry: () => void;
}

/** What went wrong, with a button to try again. */
export function Failure({ error, onRetry }: FailureProps) {
  const { title, detail, requestId } = failureWords(error);
  return (
    <div class="failure" role="alert">
      <h2>{title}</h2>
      <p>{detail}</p>
      {requestId !== null && (
        <p class="muted small">
          Request <code>{requestId}</code>
        </p>
      )}
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}
