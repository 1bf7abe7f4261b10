import { useEffect, useRef, useState } from 'preact/hooks';
import type { FailureWords } from '../api/failure-words.ts';
import { gate } from './gate.ts';
import { SignInCard } from './sign-in-card.tsx';
import { cleanSecret } from './sign-in-link.ts';

interface SignInProps {
  isChecking: boolean;
  reason: FailureWords | null;
  /** The key or code of the last attempt, so that it does not have to be typed again. */
  tried: string;
}

const noKey: FailureWords = {
  title: 'No key entered',
  detail: 'Paste an API key or a sign-in code into the field.',
  requestId: null,
};

export function SignIn({ isChecking, reason, tried }: SignInProps) {
  const [secret, setSecret] = useState(tried);
  const [isEmpty, setIsEmpty] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (tried !== '') setSecret(tried);
  }, [tried]);
  useEffect(() => input.current?.focus(), [reason]);
  const shown = isEmpty ? noKey : reason;
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const cleaned = cleanSecret(secret);
    setIsEmpty(cleaned === '');
    if (cleaned === '') input.current?.focus();
    else gate.signIn(cleaned);
  };
  return (
    <SignInCard title="Sign in">
      <p class="muted">See what your AI costs, at a glance.</p>
      <form onSubmit={onSubmit} noValidate>
        <label for="api-key">API key or sign-in code</label>
        <input
          id="api-key"
          ref={input}
          class="field mono"
          type="password"
          name="api-key"
          autoComplete="off"
          autoCapitalize="off"
          spellcheck={false}
          placeholder="tt_…"
          value={secret}
          aria-invalid={shown !== null}
          aria-describedby={shown === null ? undefined : 'sign-in-reason'}
          onInput={(event) => setSecret(event.currentTarget.value)}
        />
        <div role="alert">
          {shown !== null && !isChecking && (
            <p class="sign-in-reason" id="sign-in-reason">
              <strong>{shown.title}.</strong> {shown.detail}
            </p>
          )}
        </div>
        <button type="submit" class="button primary" disabled={isChecking}>
          {isChecking ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      <p class="hint">
        The key needs the scope <code>read</code> or <code>full</code>. The browser stores a
        read-only session, not the key. To sign in without a key, get a one-time link on the server:
      </p>
      <pre class="hint-code">
        <code>npm run -s tracetally -- sign-in --team default</code>
      </pre>
    </SignInCard>
  );
}
