import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Overview, TracePage } from '../../../client/src/api-types.ts';
import { openReads } from '../api/reads.ts';
import type { Reads } from '../api/reads.ts';
import { Pulse } from '../live/pulse.ts';

/** Everything that belongs to one key; gone when it is signed out. */
export class Session {
  readonly key: string;
  /** The key was given just now, and not found again after a reload. */
  readonly isFresh: boolean;
  readonly reads: Reads;
  readonly pulse: Pulse;
  /** The list as it was last shown, for who comes back to it. */
  lastList: TracePage | null = null;

  constructor(
    key: string,
    known: { isFresh: boolean; overview: Overview | null },
    onRefused: (error: unknown) => void,
  ) {
    this.key = key;
    this.isFresh = known.isFresh;
    this.reads = openReads(key, onRefused);
    this.pulse = new Pulse((signal) => this.reads.overview(signal), known.overview);
  }
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('There is no session here.');
  return session;
}
