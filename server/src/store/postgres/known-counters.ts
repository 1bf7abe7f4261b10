import { limits } from '../../limits.ts';
import type { LockedTeam, MovedCounter, PackedWrite } from './batch-writes.ts';
import type { Lane } from './lane.ts';

interface KnownCounter extends MovedCounter, Trust {
  /** Whether the next transaction is likely to find these values. */
  isOurs: boolean;
  /** Where the transaction that leads to these values was sent; null if it has been committed. */
  lane: Lane | null;
}

interface Trust {
  /** How often another server has written in between, less how often not. */
  misses: number;
  /** How many more of our transactions must come one after the other before the next is likely to, too. */
  calmLeft: number;
}

const noMisses: Trust = { misses: 0, calmLeft: 0 };
/** The exponent of the largest `calmLeft`. */
const missesMax = 6;

/** What a transaction will find, and the lane that it must be sent on. */
export interface Expected {
  teams: Map<string, LockedTeam>;
  /** Null if no transaction of these teams is running. */
  lane: Lane | null;
}

/**
 * The counters as our last transactions leave them. If no other server writes to a team, its next transaction finds the same values, and
 * need not read them first.
 */
export class KnownCounters {
  readonly #byTeam = new Map<string, KnownCounter>();
  readonly #firstMisses: number;

  /** The more `firstMisses` a new team has, the longer it takes until its counter counts as known. */
  constructor(firstMisses = 0) {
    this.#firstMisses = firstMisses;
  }

  /** The lane on which a transaction of the team is running, if the next one may be sent on it; otherwise null. */
  laneOf(teamId: string): Lane | null {
    const known = this.#byTeam.get(teamId);
    return known?.isOurs && known.lane?.isOpen ? known.lane : null;
  }

  /** Whether the team's next transaction is likely to find what our last one has left. */
  isKnown(teamId: string): boolean {
    return this.#byTeam.get(teamId)?.isOurs === true;
  }

  /** Null if one of the teams must be read first. */
  expectedFor(writes: readonly PackedWrite[]): Expected | null {
    const teams = new Map<string, LockedTeam>();
    const lanes = new Set<Lane>();
    for (const { write } of writes) {
      // Which of its calls are stored depends on those that are stored already.
      if (write.calls) return null;
      if (teams.has(write.teamId)) continue;
      const known = this.#byTeam.get(write.teamId);
      if (!known?.isOurs) return null;
      const { firstSeq, lastSeq, lastUs, fence, lane } = known;
      const counter = { firstSeq, lastSeq, lastUs };
      teams.set(write.teamId, { counter, fence, earlier: new Map() });
      if (lane?.isOpen) lanes.add(lane);
    }
    const [lane = null] = lanes;
    return lanes.size <= 1 ? { teams, lane } : null;
  }

  /** A transaction that leads to these counters was sent. */
  sent(counters: readonly MovedCounter[], lane: Lane): void {
    for (const counter of counters) this.#set({ ...counter, isOurs: true, lane });
  }

  /** That transaction has found what was expected. */
  confirmed(counters: readonly MovedCounter[]): void {
    for (const { teamId } of counters) {
      const known = this.#byTeam.get(teamId);
      if (known && known.misses > 0) known.misses -= 1;
    }
  }

  /** That transaction has stored nothing because of one team, whose counter is another one or which has stored the same request before. */
  refuted(counters: readonly MovedCounter[], teamId: string, isCounter: boolean): void {
    for (const counter of counters) {
      const { fromSeq: lastSeq, fromUs: lastUs } = counter;
      this.#set({ ...counter, lastSeq, lastUs, isOurs: true, lane: null });
    }
    const known = this.#byTeam.get(teamId);
    if (!known || !isCounter) return;
    known.isOurs = false;
    known.misses = Math.min(known.misses + 1, missesMax);
    known.calmLeft = 2 ** known.misses;
  }

  /** Another transaction of these teams reads the counters. */
  suspend(writes: readonly PackedWrite[]): void {
    for (const { write } of writes) {
      const known = this.#byTeam.get(write.teamId);
      if (known) known.isOurs = false;
    }
  }

  /** A transaction that has read the counters was committed. */
  committed(counters: readonly MovedCounter[]): void {
    for (const counter of counters) {
      const before = this.#byTeam.get(counter.teamId);
      // Otherwise another server has stored traces of the team.
      const isCalm = before === undefined || before.lastSeq === counter.fromSeq;
      const misses = before?.misses ?? this.#firstMisses;
      const calmLeft = before && isCalm ? Math.max(0, before.calmLeft - 1) : 2 ** misses - 1;
      this.#set({ ...counter, isOurs: isCalm && calmLeft === 0, lane: null }, { misses, calmLeft });
    }
  }

  forget(writes: readonly PackedWrite[]): void {
    for (const { write } of writes) this.#byTeam.delete(write.teamId);
  }

  #set(
    counter: Omit<KnownCounter, keyof Trust>,
    { misses, calmLeft }: Trust = this.#byTeam.get(counter.teamId) ?? noMisses,
  ): void {
    // The order of the map is that of the last transactions.
    this.#byTeam.delete(counter.teamId);
    this.#byTeam.set(counter.teamId, { ...counter, misses, calmLeft });
    if (this.#byTeam.size <= limits.postgresCountersKeptMax) return;
    for (const oldest of this.#byTeam.keys()) {
      this.#byTeam.delete(oldest);
      return;
    }
  }
}
