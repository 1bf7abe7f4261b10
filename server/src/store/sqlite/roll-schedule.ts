import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { RollSize } from '../roll-size.ts';
import { wideRestOf } from '../store.ts';
import type { RollBounds, TailRows } from '../store.ts';
import type { TeamEnd } from './writer.ts';

/** A roll that is due. */
export interface DueRoll {
  team: TeamTails;
  speed: RollSpeed;
  rowsMax: number;
}

/** What the writer thread knows about a team. The marks in the file decide; these only say when to look. */
export interface TeamTails extends TeamEnd {
  rolledSeq: Record<RollSpeed, number>;
  /** The tail of the wide sets is long enough to be stored, and is rolled up until only the rest is left. */
  isDraining: boolean;
  failures: number;
  /** Not before this time, after a failure. */
  waitUntilMs: number;
}

/** Decides which team is rolled up next, and when. Pure: times are passed in, and the caller rolls. */
export class RollSchedule {
  readonly #bounds: RollBounds;
  /** Only teams with a tail. The team that was rolled up last comes last, so that all get their turn. */
  readonly #teams = new Map<number, TeamTails>();
  /** The tails of all these teams. Counted as they change, since there may be many teams. */
  readonly #tails = { hot: 0, wide: 0 };
  readonly #sizes = {
    hot: new RollSize(limits.rollMsTarget),
    wide: new RollSize(limits.rollMsTarget),
  };

  constructor(bounds: RollBounds) {
    this.#bounds = bounds;
  }

  get hasTails(): boolean {
    return this.#teams.size > 0;
  }

  get tails(): TailRows {
    return { ...this.#tails };
  }

  /** Where the marks of a team are supposed to be; null if it has no tail. */
  rolledSeqOf(teamNo: number): Readonly<Record<RollSpeed, number>> | null {
    return this.#teams.get(teamNo)?.rolledSeq ?? null;
  }

  /** As many traces of the wide sets have been added up as are stored at once. */
  noteFull(teamNo: number): void {
    const team = this.#teams.get(teamNo);
    if (team) team.isDraining = true;
  }

  /** Returns whether a roll is due now. `rolledSeq` is asked for only if the team is not known to have a tail. */
  noteCommit(end: TeamEnd, rolledSeq: () => Record<RollSpeed, number>): boolean {
    let team = this.#teams.get(end.teamNo);
    if (team) {
      this.#count(team, -1);
      team.lastSeq = end.lastSeq;
    } else {
      team = { ...end, rolledSeq: rolledSeq(), isDraining: false, failures: 0, waitUntilMs: 0 };
      // Requests that were only repeated have added no trace.
      if (!hasTail(team)) return false;
      this.#teams.set(end.teamNo, team);
    }
    this.#count(team, 1);
    if (tailOf(team, 'wide') >= this.#bounds.wideTailRows) team.isDraining = true;
    return tailOf(team, 'hot') >= this.#bounds.hotTailRows || team.isDraining;
  }

  /**
   * The next roll: of a tail over its bound, or of any tail if nothing was written for `idleMs`. Wide sets of a team that has begun come
   * before those of others.
   */
  next(nowMs: number, idleMs: number, begunTeamNo: number | null = null): DueRoll | null {
    const hotMin = idleMs >= limits.hotRollIdleMs ? 1 : this.#bounds.hotTailRows;
    const wideMin = Math.min(
      idleMs >= limits.wideRollIdleMs ? 1 : this.#bounds.wideTailRows,
      idleMs >= limits.hotRollIdleMs ? this.#bounds.hotTailRows : Infinity,
    );
    for (const [speed, rowsMin] of [
      ['hot', hotMin],
      ['wide', wideMin],
    ] as const) {
      const begun = speed === 'wide' && begunTeamNo !== null && this.#teams.get(begunTeamNo);
      for (const team of begun ? [begun, ...this.#teams.values()] : this.#teams.values()) {
        const isDue = tailOf(team, speed) >= rowsMin || (speed === 'wide' && team.isDraining);
        if (!isDue || team.waitUntilMs > nowMs) continue;
        return { team, speed, rowsMax: this.#sizes[speed].rows };
      }
    }
    return null;
  }

  /** A transaction has read this many traces of a roll. */
  noteRead({ speed }: DueRoll, rows: number, tookMs: number): void {
    this.#sizes[speed].note(rows, tookMs);
  }

  /** The marks of a team after a roll, or after an attempt that found nothing to do. */
  noteRolled({ team }: DueRoll, rolledSeq: Record<RollSpeed, number>): void {
    if (this.#teams.delete(team.teamNo)) this.#count(team, -1);
    const rolled = { ...team, rolledSeq, failures: 0, waitUntilMs: 0 };
    const isMoved = rolledSeq.hot !== team.rolledSeq.hot || rolledSeq.wide !== team.rolledSeq.wide;
    if (!isMoved || !hasTail(rolled)) return;
    const isDraining = team.isDraining && tailOf(rolled, 'wide') > wideRestOf(this.#bounds);
    this.#teams.set(team.teamNo, { ...rolled, isDraining });
    this.#count(rolled, 1);
  }

  noteFailed({ team }: DueRoll, nowMs: number): void {
    const pauseMs = Math.min(limits.rollRetryMsMin * 2 ** team.failures, limits.rollRetryMsMax);
    team.failures += 1;
    team.waitUntilMs = nowMs + pauseMs;
  }

  #count(team: TeamTails, sign: 1 | -1): void {
    for (const speed of ['hot', 'wide'] as const) {
      this.#tails[speed] += sign * Math.max(0, tailOf(team, speed));
    }
  }
}

function hasTail(team: TeamTails): boolean {
  return tailOf(team, 'hot') > 0 || tailOf(team, 'wide') > 0;
}

function tailOf({ firstSeq, lastSeq, rolledSeq }: TeamTails, speed: RollSpeed): number {
  return lastSeq - Math.max(rolledSeq[speed], firstSeq - 1);
}
