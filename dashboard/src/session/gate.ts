import { TraceTallyError } from '../../../client/src/reading.ts';
import { failureWords } from '../api/failure-words.ts';
import type { FailureWords } from '../api/failure-words.ts';
import { endSession, previewCode, readSession, startSession } from '../api/session-calls.ts';
import type { SignedIn, Team } from '../api/session-calls.ts';
import { Store } from '../parts/store.ts';
import { navigation } from '../route/navigation.ts';
import { homeHref } from '../route/route.ts';
import { Session } from './session.ts';
import { isCode, linkOfFragment } from './sign-in-link.ts';
import type { SignInLink } from './sign-in-link.ts';

export type GateState =
  /** Waiting for the server to say who is signed in. */
  | { kind: 'opening' }
  /** The server could not say. */
  | { kind: 'failed'; reason: FailureWords }
  | { kind: 'out'; reason: FailureWords | null; tried: string }
  | { kind: 'checking'; tried: string }
  /** A sign-in link was opened in a browser that is signed in. */
  | { kind: 'asking'; current: SignedIn; link: { code: string; team: Team } }
  /** The same, but the link is not valid. */
  | { kind: 'notice'; current: SignedIn; reason: FailureWords }
  | { kind: 'in'; session: Session };

const notAKey: FailureWords = {
  title: 'This is not an API key',
  detail: 'A key contains only ASCII letters, digits and punctuation, and no spaces.',
  requestId: null,
};

const keyInLink: FailureWords = {
  title: 'Sign-in links that contain an API key no longer work',
  detail:
    'The key would stay in the browser history. Paste the key here, or get a one-time link with "tracetally sign-in".',
  requestId: null,
};

const notSignedOut: FailureWords = {
  title: 'The server did not confirm the sign-out',
  detail: 'This browser may still be signed in. Reload the page and sign out again.',
  requestId: null,
};

/** Decides whether the sign-in page or the dashboard is shown. */
class Gate {
  readonly state = new Store<GateState>({ kind: 'opening' });
  /** Counts the operations, so that a late reply to an older one changes nothing. */
  #turn = 0;

  /** A sign-in link comes first, then the session of this browser. */
  open(): void {
    addEventListener('hashchange', () => {
      const link = this.#takeLink();
      if (link !== null) this.#follow(link);
    });
    const link = this.#takeLink();
    if (link === null) this.resume();
    else this.#follow(link);
  }

  /** Shows the dashboard if this browser is signed in. */
  resume(reasonIfOut: FailureWords | null = null): void {
    this.#show({ kind: 'opening' });
    this.#afterwards(
      async () => {
        const { current, refusal } = await readSession();
        if (current !== null) return this.#enter(current);
        // Not being signed in yet is not a failure.
        return out(isSignedOut(refusal) ? reasonIfOut : failureWords(refusal));
      },
      (reason) => ({ kind: 'failed', reason }),
    );
  }

  /** With a key or a one-time code. */
  signIn(secret: string): void {
    if (!/^[\x21-\x7e]+$/.test(secret)) {
      this.#show(out(notAKey, secret));
      return;
    }
    this.#show({ kind: 'checking', tried: secret });
    this.#afterwards(
      async () =>
        this.#enter(await startSession(isCode(secret) ? { code: secret } : { key: secret })),
      (reason) => out(reason, secret),
    );
  }

  /** Goes back to the session of this browser after a question about a link. */
  stay(current: SignedIn): void {
    this.#show(this.#enter(current));
  }

  signOut(): void {
    this.#show({ kind: 'opening' });
    navigation.replace(homeHref);
    this.#afterwards(
      async () => {
        await endSession();
        return out(null);
      },
      () => out(notSignedOut),
    );
  }

  /** The link leaves the address bar and the history before anything else happens. */
  #takeLink(): SignInLink | null {
    const link = linkOfFragment(location.hash);
    if (link !== null) navigation.replace(homeHref);
    return link;
  }

  /** A link never replaces a session without asking: it may lead to an attacker's team. */
  #follow(link: SignInLink): void {
    const tried = link.kind === 'code' ? link.code : '';
    this.#show({ kind: 'opening' });
    this.#afterwards(
      async () => {
        const { current } = await readSession();
        if (link.kind === 'key') {
          return current === null ? out(keyInLink) : { kind: 'notice', current, reason: keyInLink };
        }
        if (current === null) return this.#enter(await startSession({ code: link.code }));
        return askAbout(link.code, current);
      },
      (reason) => out(reason, tried),
    );
  }

  #enter(signedIn: SignedIn): GateState {
    const session = new Session(signedIn, (error) => {
      // A reply to an earlier session does not apply to this one.
      const now = this.state.value;
      if (now.kind === 'in' && now.session === session) this.#refused(error);
    });
    return { kind: 'in', session };
  }

  /** A session that has ended may have been replaced by a sign-in in another tab. */
  #refused(error: unknown): void {
    const reason = failureWords(error);
    if (isSignedOut(error)) this.resume(reason);
    else this.#show(out(reason));
  }

  #show(next: GateState): void {
    this.#turn += 1;
    const now = this.state.value;
    if (now.kind === 'in') now.session.pulse.stop();
    this.state.set(next);
    if (next.kind === 'in') next.session.pulse.start();
  }

  /** Shows the result of the work, unless something else has started in the meantime. */
  #afterwards(work: () => Promise<GateState>, ifFailed: (reason: FailureWords) => GateState): void {
    const turn = this.#turn;
    void work()
      .catch((error: unknown) => ifFailed(failureWords(error)))
      .then((next) => {
        if (turn === this.#turn) this.#show(next);
      });
  }
}

async function askAbout(code: string, current: SignedIn): Promise<GateState> {
  try {
    const { team } = await previewCode(code);
    return { kind: 'asking', current, link: { code, team } };
  } catch (error) {
    return { kind: 'notice', current, reason: failureWords(error) };
  }
}

function out(reason: FailureWords | null, tried = ''): GateState {
  return { kind: 'out', reason, tried };
}

function isSignedOut(error: unknown): boolean {
  return error instanceof TraceTallyError && error.code === 'not_signed_in';
}

export const gate = new Gate();
