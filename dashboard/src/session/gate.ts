import { openReads } from '../api/reads.ts';
import { failureWords } from '../api/failure-words.ts';
import type { FailureWords } from '../api/failure-words.ts';
import { navigation } from '../route/navigation.ts';
import { overviewHref } from '../route/route.ts';
import { Store } from '../parts/store.ts';
import { keyOfFragment } from './key-fragment.ts';
import { Session } from './session.ts';
import { forgetKey, readStoredKey, storeKey } from './stored-key.ts';

export type GateState =
  | { kind: 'out'; reason: FailureWords | null; triedKey: string }
  | { kind: 'checking'; triedKey: string }
  | { kind: 'in'; session: Session };

/** What no header can carry is not even sent. */
const noKey: FailureWords = {
  title: 'This cannot be a key',
  detail: 'Keys have no spaces and only plain letters, digits and signs.',
  requestId: null,
};

/** Who may look. */
class Gate {
  readonly state = new Store<GateState>({ kind: 'out', reason: null, triedKey: '' });

  /** A link with a key comes first, then what this tab remembers. */
  open(): void {
    addEventListener('hashchange', () => this.#takeLink());
    if (this.#takeLink()) return;
    const key = readStoredKey();
    if (key !== null) this.#enter(key, { isFresh: false, overview: null });
  }

  /** Asks the server whether the key may read, before anything is shown. */
  async signIn(key: string): Promise<void> {
    if (!/^[\x21-\x7e]+$/.test(key)) {
      this.#leave({ kind: 'out', reason: noKey, triedKey: key });
      return;
    }
    this.#leave({ kind: 'checking', triedKey: key });
    try {
      const overview = await openReads(key).overview();
      if (this.#isChecking(key)) this.#enter(key, { isFresh: true, overview });
    } catch (error) {
      if (this.#isChecking(key)) {
        this.state.set({ kind: 'out', reason: failureWords(error), triedKey: key });
      }
    }
  }

  signOut(): void {
    this.#leave({ kind: 'out', reason: null, triedKey: '' });
    navigation.replace(overviewHref);
  }

  /** The key leaves the address bar and the history before anything else happens. */
  #takeLink(): boolean {
    const key = keyOfFragment(location.hash);
    if (key === null) return false;
    navigation.replace(overviewHref);
    void this.signIn(key);
    return true;
  }

  #enter(key: string, known: ConstructorParameters<typeof Session>[1]): void {
    let session: Session;
    try {
      session = new Session(key, known, (error) => {
        // An answer to a former session says nothing about this one.
        const now = this.state.value;
        if (now.kind !== 'in' || now.session !== session) return;
        this.#leave({ kind: 'out', reason: failureWords(error), triedKey: '' });
      });
    } catch (error) {
      this.#leave({ kind: 'out', reason: failureWords(error), triedKey: '' });
      return;
    }
    storeKey(key);
    this.state.set({ kind: 'in', session });
    session.pulse.start();
  }

  #leave(next: GateState): void {
    const now = this.state.value;
    if (now.kind === 'in') now.session.pulse.stop();
    forgetKey();
    this.state.set(next);
  }

  #isChecking(key: string): boolean {
    const now = this.state.value;
    return now.kind === 'checking' && now.triedKey === key;
  }
}

export const gate = new Gate();
