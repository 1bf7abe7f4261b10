import { PauseIcon, PlayIcon } from '../parts/icons.tsx';
import { useStore } from '../parts/store.ts';
import { useSession } from '../session/session.ts';

/** Shows whether the page updates live, and pauses or resumes the updates. */
export function LiveControl() {
  const { pulse } = useSession();
  const { isPaused, failure } = useStore(pulse.state);
  const label = isPaused ? 'Resume live updates' : 'Pause live updates';
  const state = isPaused ? 'paused' : failure === null ? 'live' : 'offline';
  const words = { paused: 'Paused', live: 'Live', offline: 'Offline' };
  return (
    <button
      type="button"
      class={`button live ${state}`}
      aria-label={`${label} (now ${words[state].toLowerCase()})`}
      title={label}
      onClick={() => (isPaused ? pulse.resume() : pulse.pause())}
    >
      <span class="live-dot" />
      <span class="live-word">{words[state]}</span>
      {isPaused ? <PlayIcon /> : <PauseIcon />}
    </button>
  );
}
