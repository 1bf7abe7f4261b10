import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { RollSize } from '../roll-size.ts';
import { wideRestOf } from '../store.ts';
import type { RollBounds } from '../store.ts';
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
  /** The tail of the wide sets has reached its bound, and is rolled up until only the rest is left. */
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

  /** Returns whether a roll is due now. `rolledSeq` is asked for only if the team is not known to have a tail. */
  noteCommit(end: TeamEnd, rolledSeq: () => Record<RollSpeed, number>): boolean {
    let team = this.#teams.get(end.teamNo);
    if (team) team.lastSeq = end.lastSeq;
    else {
      team = { ...end, rolledSeq: rolledSeq(), isDraining: false, failures: 0, waitUntilMs: 0 };
      this.#teams.set(end.teamNo, team);
    }
    if (tailOf(team, 'wide') >= this.#bounds.wideTailRows) team.isDraining = true;
    return tailOf(team, 'hot') >= this.#bounds.hotTailRows || team.isDraining;
  }

  /** The next roll: of a tail over its bound, or of any tail if nothing was written for `idleMs`. */
  next(nowMs: number, idleMs: number): DueRoll | null {
    const hotMin = idleMs >= limits.hotRollIdleMs ? 1 : this.#bounds.hotTailRows;
    const wideMin = Math.min(
      idleMs >= limits.wideRollIdleMs ? 1 : this.#bounds.wideTailRows,
      idleMs >= limits.hotRollIdleMs ? this.#bounds.hotTailRows : Infinity,
    );
    for (const [speed, rowsMin] of [
      ['hot', hotMin],
      ['wide', wideMin],
    ] as const) {
      for (const team of this.#teams.values()) {
        const isDue = tailOf(team, speed) >= rowsMin || (speed === 'wide' && team.isDraining);
        if (!isDue || team.waitUntilMs > nowMs) continue;
        return { team, speed, rowsMax: this.#sizes[speed].rows };
      }
    }
    return null;
  }

  noteRolled(
    { team, speed }: DueRoll,
    roll: { rows: number; rolledSeq: Record<RollSpeed, number>; tookMs: number },
  ): void {
    this.#sizes[speed].note(roll.rows, roll.tookMs);
    this.#teams.delete(team.teamNo);
    const isBehind = Math.min(roll.rolledSeq.hot, roll.rolledSeq.wide) < team.lastSeq;
    if (roll.rows === 0 || !isBehind) return;
    const rolled = { ...team, rolledSeq: roll.rolledSeq, failures: 0, waitUntilMs: 0 };
    const isDraining = team.isDraining && tailOf(rolled, 'wide') > wideRestOf(this.#bounds);
    this.#teams.set(team.teamNo, { ...rolled, isDraining });
  }

  noteFailed({ team }: DueRoll, nowMs: number): void {
    const pauseMs = Math.min(limits.rollRetryMsMin * 2 ** team.failures, limits.rollRetryMsMax);
    team.failures += 1;
    team.waitUntilMs = nowMs + pauseMs;
  }
}

function tailOf({ firstSeq, lastSeq, rolledSeq }: TeamTails, speed: RollSpeed): number {
  return lastSeq - Math.max(rolledSeq[speed], firstSeq - 1);
}
