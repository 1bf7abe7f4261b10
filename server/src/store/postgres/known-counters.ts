import { limits } from '../../limits.ts';
import type { LockedTeam, MovedCounter, PackedWrite } from './batch-writes.ts';

interface KnownCounter extends MovedCounter {
  /** Whether no other server has stored traces of the team between the last two transactions. */
  isOurs: boolean;
}

/**
 * The counters as our last transactions left them. If no other server writes to a team, its next transaction finds the same values, and
 * need not read them first.
 */
export class KnownCounters {
  readonly #byTeam = new Map<string, KnownCounter>();

  /** What the transaction will find, if that is likely for each of its teams; otherwise null. */
  expectedFor(writes: readonly PackedWrite[]): Map<string, LockedTeam> | null {
    const teams = new Map<string, LockedTeam>();
    for (const { write } of writes) {
      if (teams.has(write.teamId)) continue;
      const known = this.#byTeam.get(write.teamId);
      if (!known?.isOurs) return null;
      const { firstSeq, lastSeq, lastUs, fence } = known;
      teams.set(write.teamId, {
        counter: { firstSeq, lastSeq, lastUs },
        fence,
        earlier: new Map(),
      });
    }
    return teams;
  }

  /** These counters were committed. */
  note(counters: readonly MovedCounter[]): void {
    for (const counter of counters) {
      const before = this.#byTeam.get(counter.teamId);
      // The order of the map is that of the last transactions.
      this.#byTeam.delete(counter.teamId);
      const isOurs = before === undefined || before.lastSeq === counter.fromSeq;
      this.#byTeam.set(counter.teamId, { ...counter, isOurs });
    }
    for (const teamId of this.#byTeam.keys()) {
      if (this.#byTeam.size <= limits.postgresCountersKeptMax) break;
      this.#byTeam.delete(teamId);
    }
  }

  forget(writes: readonly PackedWrite[]): void {
    for (const { write } of writes) this.#byTeam.delete(write.teamId);
  }
}
