import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { TracePage } from '../../../client/src/api-types.ts';
import { openReads } from '../api/reads.ts';
import type { Reads } from '../api/reads.ts';
import type { SignedIn, Team } from '../api/session-calls.ts';
import { Pulse } from '../live/pulse.ts';

let sessions = 0;

/** Everything that belongs to one sign-in; discarded when it ends. */
export class Session {
  /** Different for each sign-in, even to the same team. */
  readonly no = ++sessions;
  readonly team: Team;
  readonly reads: Reads;
  readonly pulse: Pulse;
  /** The list as it was last shown, for a user who returns to it. */
  lastList: TracePage | null = null;

  constructor({ team }: SignedIn, onRefused: (error: unknown) => void) {
    this.team = team;
    this.reads = openReads(team.id, onRefused);
    this.pulse = new Pulse((signal) => this.reads.overview(signal));
  }
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('There is no session here.');
  return session;
}
