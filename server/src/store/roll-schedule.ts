import { limits } from '../limits.ts';

/** A team whose rollups are behind. */
export interface TeamTail {
  teamId: string;
  /** Traces and changes that are not in the rollups. */
  rows: number;
  /** Something else is to be done: rollups are built again, or old ones removed. */
  hasWork: boolean;
}

interface Waiting extends TeamTail {
  sinceMs: number;
  failures: number;
  /** Not before this time, after a failure. */
  waitUntilMs: number;
}

/** Decides which team is rolled up next, and when. Pure: times are passed in, and the caller rolls. */
export class RollSchedule {
  readonly #rowsMin: number;
  /** Only teams with something to do. The team that was rolled up last comes last, so that all get their turn. */
  readonly #teams = new Map<string, Waiting>();

  /** A tail of `rowsMin` traces is due at once; a shorter one when it has waited for a while. */
  constructor(rowsMin: number) {
    this.#rowsMin = rowsMin;
  }

  get tailRows(): number {
    let rows = 0;
    for (const team of this.#teams.values()) rows += team.rows;
    return rows;
  }

  note(tail: TeamTail, nowMs: number): void {
    const known = this.#teams.get(tail.teamId);
    if (tail.rows === 0 && !tail.hasWork) {
      this.#teams.delete(tail.teamId);
    } else if (known) {
      Object.assign(known, tail);
    } else {
      this.#teams.set(tail.teamId, { ...tail, sinceMs: nowMs, failures: 0, waitUntilMs: 0 });
    }
  }

  /** The next team; null if none is due. */
  next(nowMs: number): TeamTail | null {
    for (const team of this.#teams.values()) {
      const isDue =
        team.hasWork || team.rows >= this.#rowsMin || nowMs - team.sinceMs >= limits.rollAfterMsMax;
      if (isDue && nowMs >= team.waitUntilMs) return team;
    }
    return null;
  }

  /** After a roll. */
  noteRolled(tail: TeamTail, nowMs: number): void {
    this.#teams.delete(tail.teamId);
    this.note(tail, nowMs);
  }

  /** Nothing is tried before this time: another process is rolling up the team. */
  pause(teamId: string, untilMs: number): void {
    const team = this.#teams.get(teamId);
    if (team) team.waitUntilMs = untilMs;
  }

  noteFailed(teamId: string, nowMs: number): void {
    const team = this.#teams.get(teamId);
    if (!team) return;
    const pauseMs = Math.min(limits.rollRetryMsMin * 2 ** team.failures, limits.rollRetryMsMax);
    team.failures += 1;
    team.waitUntilMs = nowMs + pauseMs;
  }
}
