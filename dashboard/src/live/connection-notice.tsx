import { failureWords } from '../api/failure-words.ts';
import { timeOfDay } from '../format/moment.ts';
import { useStore } from '../parts/store.ts';
import { useSession } from '../session/session.ts';

/** Tells that what is shown has become old, and that the page keeps trying. */
export function ConnectionNotice() {
  const { pulse } = useSession();
  const { overview, failure } = useStore(pulse.state);
  // Before the first answer there is nothing old to excuse; the view itself says what is wrong.
  const isShown = failure !== null && overview !== null;
  return (
    <div role="status">
      {isShown && (
        <div class="notice">
          <p>
            <strong>{failureWords(failure.error).title}.</strong>{' '}
            {failure.lastAnswerMs !== null &&
              `Showing data from ${timeOfDay(failure.lastAnswerMs)}. `}
            Retrying automatically.
          </p>
          <button type="button" class="button small" onClick={() => pulse.beatNow()}>
            Try now
          </button>
        </div>
      )}
    </div>
  );
}
