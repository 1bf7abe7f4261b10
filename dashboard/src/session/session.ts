import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { openReads } from '../api/reads.ts';
import type { Reads } from '../api/reads.ts';
import type { SignedIn, Team } from '../api/session-calls.ts';
import { Pulse } from '../live/pulse.ts';
import { Store } from '../parts/store.ts';
import { noQuestion } from '../route/route.ts';
import type { Question } from '../route/route.ts';
import type { LastList } from '../traces/last-list.ts';

let sessions = 0;

/** Everything that belongs to one sign-in; discarded when it ends. */
export class Session {
  /** Different for each sign-in, even to the same team. */
  readonly no = ++sessions;
  readonly team: Team;
  readonly reads: Reads;
  readonly pulse: Pulse;
  /** Where the team's days begin. An administrator can change it at any time, so every answer updates it. */
  readonly timeZone: Store<string>;
  /** The list as it was last shown, with its address, for a user who returns to it. */
  lastList: LastList | null = null;
  /** What the last view was about, for the way from a trace to the other views. */
  question: Question = noQuestion;

  constructor({ team }: SignedIn, onRefused: (error: unknown) => void) {
    this.team = team;
    this.timeZone = new Store(team.time_zone);
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
