import { useEffect, useRef } from 'preact/hooks';
import type { FailureWords } from '../api/failure-words.ts';
import type { SignedIn, Team } from '../api/session-calls.ts';
import { gate } from './gate.ts';
import { SignInCard } from './sign-in-card.tsx';

interface LinkQuestionProps {
  current: SignedIn;
  link: { code: string; team: Team };
}

/** Asks before a link replaces the session. The safe answer has the focus. */
export function LinkQuestion({ current, link }: LinkQuestionProps) {
  const isSame = link.team.id === current.team.id;
  return (
    <SignInCard title={isSame ? 'Sign in again?' : 'Switch teams?'}>
      <div class="link-question">
        <h2>{isSame ? 'Sign in again?' : 'Switch teams?'}</h2>
        <dl>
          <dt>This link signs you in to</dt>
          <dd>{link.team.name}</dd>
          <dt>You are signed in to</dt>
          <dd>{current.team.name}</dd>
        </dl>
        <p class="muted">
          {isSame
            ? 'You need the link only if your session is about to end.'
            : 'Switch only if you asked for this link. It changes the team in all tabs of this browser.'}
        </p>
        <div class="link-answers">
          <StayButton current={current} />
          <button type="button" class="button" onClick={() => gate.signIn(link.code)}>
            {isSame ? 'Sign in again' : 'Switch'}
          </button>
        </div>
      </div>
    </SignInCard>
  );
}

/** The link is not valid, and the session stays as it was. */
export function LinkNotice({ current, reason }: { current: SignedIn; reason: FailureWords }) {
  return (
    <SignInCard title="Sign-in link">
      <div class="link-question">
        <p role="alert" class="sign-in-reason">
          <strong>{reason.title}.</strong> {reason.detail}
        </p>
        <dl>
          <dt>You are still signed in to</dt>
          <dd>{current.team.name}</dd>
        </dl>
        <div class="link-answers">
          <StayButton current={current} />
        </div>
      </div>
    </SignInCard>
  );
}

function StayButton({ current }: { current: SignedIn }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  return (
    <button ref={button} type="button" class="button primary" onClick={() => gate.stay(current)}>
      Stay signed in
    </button>
  );
}

/** The server did not say who is signed in. */
export function OpeningFailure({ reason }: { reason: FailureWords }) {
  return (
    <SignInCard title="Sign in">
      <div class="link-question">
        <p role="alert" class="sign-in-reason">
          <strong>{reason.title}.</strong> {reason.detail}
        </p>
        <div class="link-answers">
          <button type="button" class="button primary" onClick={() => gate.resume()}>
            Try again
          </button>
        </div>
      </div>
    </SignInCard>
  );
}
