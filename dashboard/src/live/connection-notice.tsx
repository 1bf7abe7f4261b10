import { failureWords } from '../api/failure-words.ts';
import { timeOfDay } from '../format/moment.ts';
import { useStore } from '../parts/store.ts';
import { useSession } from '../session/session.ts';

/** Says that the data shown is out of date, and that the page keeps retrying. */
export function ConnectionNotice() {
  const { pulse } = useSession();
  const { overview, failure } = useStore(pulse.state);
  // Before the first reply there is no old data; the view itself shows the error.
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
