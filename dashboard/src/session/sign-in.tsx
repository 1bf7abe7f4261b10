import { useEffect, useRef, useState } from 'preact/hooks';
import type { FailureWords } from '../api/failure-words.ts';
import { TallyMark } from '../parts/icons.tsx';
import { ThemeToggle } from '../shell/theme-toggle.tsx';
import { gate } from './gate.ts';
import { cleanKey } from './key-fragment.ts';

interface SignInProps {
  isChecking: boolean;
  reason: FailureWords | null;
  triedKey: string;
}

const noKey: FailureWords = {
  title: 'No key yet',
  detail: 'Paste an API key into the field.',
  requestId: null,
};

export function SignIn({ isChecking, reason, triedKey }: SignInProps) {
  const [key, setKey] = useState(triedKey);
  const [isEmpty, setIsEmpty] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (triedKey !== '') setKey(triedKey);
  }, [triedKey]);
  useEffect(() => {
    document.title = 'Sign in · TraceTally';
    input.current?.focus();
  }, [reason]);
  const shown = isEmpty ? noKey : reason;
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const cleaned = cleanKey(key);
    setIsEmpty(cleaned === '');
    if (cleaned === '') input.current?.focus();
    else void gate.signIn(cleaned);
  };
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
        <p class="muted">See what your AI costs, at a glance.</p>
        <form onSubmit={onSubmit} noValidate>
          <label for="api-key">API key</label>
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
            value={key}
            aria-invalid={shown !== null}
            aria-describedby={shown === null ? undefined : 'sign-in-reason'}
            onInput={(event) => setKey(event.currentTarget.value)}
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
          The key stays in this tab until you close it or sign out. It needs the scope{' '}
          <code>read</code> or <code>full</code>. To make one on the server:
        </p>
        <pre class="hint-code">
          <code>npm run -s tracetally -- keys create --team default --scope read</code>
        </pre>
      </main>
    </div>
  );
}
