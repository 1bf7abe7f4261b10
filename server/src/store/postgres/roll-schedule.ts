import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import type { RollBounds } from '../store.ts';
import type { TeamMarks } from '../team-marks.ts';

export interface RollJob {
  teamId: string;
  speed: RollSpeed;
}

interface TeamState {
  lastSeq: number;
  /** As far as this process knows: other processes roll up too. */
  rolledSeq: Record<RollSpeed, number>;
  /** Until then nothing is tried. */
  pausedUntilMs: number;
  failures: number;
}

const speeds: readonly RollSpeed[] = ['hot', 'wide'];

/**
 * Decides which team is rolled up next: one whose tail has reached its bound, or, if there have been no writes for a while, any team
 * that has a tail. Teams take turns.
 */
export class RollSchedule {
  readonly #bounds: Readonly<Record<RollSpeed, number>>;
  readonly #teams = new Map<string, TeamState>();
  #lastWriteMs = -Infinity;

  constructor({ hotTailRows, wideTailRows }: RollBounds) {
    this.#bounds = { hot: hotTailRows, wide: wideTailRows };
  }

  /** The team's counter has moved. */
  written(teamId: string, fromSeq: number, lastSeq: number, nowMs: number): void {
    this.#lastWriteMs = nowMs;
    this.found(teamId, lastSeq, { hot: fromSeq, wide: fromSeq });
  }

  /** The team has a tail, which starts here unless more is known. */
  found(teamId: string, lastSeq: number, rolledSeq: Readonly<Record<RollSpeed, number>>): void {
    const state = this.#teams.get(teamId);
    if (state) state.lastSeq = Math.max(state.lastSeq, lastSeq);
    else {
      const fresh = { pausedUntilMs: 0, failures: 0 };
      this.#teams.set(teamId, { lastSeq, rolledSeq: { ...rolledSeq }, ...fresh });
    }
  }

  next(nowMs: number): RollJob | null {
    for (const speed of speeds) {
      for (const [teamId, state] of this.#teams) {
        if (nowMs < state.pausedUntilMs || nowMs < this.#dueMs(state, speed)) continue;
        // The team's next turn comes after those of the others.
        this.#teams.delete(teamId);
        this.#teams.set(teamId, state);
        return { teamId, speed };
      }
    }
    return null;
  }

  /** How long there is certainly nothing to do, unless something is written. */
  waitMs(nowMs: number): number {
    let nextMs = Infinity;
    for (const state of this.#teams.values()) {
      for (const speed of speeds) {
        nextMs = Math.min(nextMs, Math.max(state.pausedUntilMs, this.#dueMs(state, speed)));
      }
    }
    return Math.max(1, nextMs - nowMs);
  }

  /** A roll has succeeded, or found nothing to do. No marks: another process is rolling up the team. */
  rolled({ teamId }: RollJob, marks: TeamMarks | null, lastSeq: number, nowMs: number): void {
    const state = this.#teams.get(teamId);
    if (!state) return;
    state.failures = 0;
    if (!marks) {
      state.pausedUntilMs = nowMs + limits.hotRollIdleMs;
      return;
    }
    state.lastSeq = Math.max(state.lastSeq, lastSeq);
    state.rolledSeq = { ...marks.rolledSeq };
    const isDone = speeds.every((speed) => state.rolledSeq[speed] >= state.lastSeq);
    if (isDone) this.#teams.delete(teamId);
  }

  failed({ teamId }: RollJob, nowMs: number): void {
    const state = this.#teams.get(teamId);
    if (!state) return;
    const pauseMs = limits.rollRetryMsMin * 2 ** Math.min(state.failures, 16);
    state.failures += 1;
    state.pausedUntilMs = nowMs + Math.min(pauseMs, limits.rollRetryMsMax);
  }

  #dueMs({ lastSeq, rolledSeq }: TeamState, speed: RollSpeed): number {
    const tail = lastSeq - rolledSeq[speed];
    if (tail <= 0) return Infinity;
    if (tail >= this.#bounds[speed]) return -Infinity;
    return this.#lastWriteMs + (speed === 'hot' ? limits.hotRollIdleMs : limits.wideRollIdleMs);
  }
}
