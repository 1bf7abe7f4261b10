import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { RollSize } from '../roll-size.ts';
import { wideRestOf } from '../store.ts';
import type { RollBounds, TailRows } from '../store.ts';
import type { Rolled } from './roll.ts';

export interface RollJob {
  teamId: string;
  speed: RollSpeed;
  rowsMax: number;
}

interface TailState {
  /** As far as this process knows: other processes roll up too. */
  rolledSeq: number;
  /** The tail has reached its bound, and is rolled up until only the rest is left. */
  isDraining: boolean;
  /** Until then nothing is tried. */
  pausedUntilMs: number;
  failures: number;
  /** The part of `RollSchedule.tails` that is this tail's. */
  countedRows: number;
}

interface TeamState {
  lastSeq: number;
  tails: Readonly<Record<RollSpeed, TailState>>;
}

const speeds: readonly RollSpeed[] = ['hot', 'wide'];

/**
 * Decides which team is rolled up next: one whose tail has reached its bound, or, if there have been no writes for a while, any team
 * that has a tail. Teams take turns. Pure: times are passed in, and the caller rolls.
 */
export class RollSchedule {
  readonly #bounds: Readonly<Record<RollSpeed, number>>;
  readonly #rests: Readonly<Record<RollSpeed, number>>;
  readonly #teams = new Map<string, TeamState>();
  readonly #sizes = {
    hot: new RollSize(limits.postgresRollMsTarget),
    wide: new RollSize(limits.postgresRollMsTarget),
  };
  /** Counted as they change, since there may be many teams. */
  readonly #tails = { hot: 0, wide: 0 };
  readonly #draining = { hot: 0, wide: 0 };
  #lastWriteMs = -Infinity;

  constructor(bounds: RollBounds) {
    this.#bounds = { hot: bounds.hotTailRows, wide: bounds.wideTailRows };
    this.#rests = { hot: 0, wide: wideRestOf(bounds) };
  }

  get tails(): TailRows {
    return { ...this.#tails };
  }

  /** The team's counter has moved. If nothing else is known of the team, its tail starts with this write. */
  written(teamId: string, fromSeq: number, lastSeq: number, nowMs: number): void {
    this.#lastWriteMs = nowMs;
    const state = this.#teams.get(teamId) ?? this.#add(teamId);
    for (const speed of speeds) {
      const tail = state.tails[speed];
      if (tail.rolledSeq === unknownSeq) tail.rolledSeq = fromSeq;
    }
    this.#note(state, lastSeq);
  }

  /** The marks of a team that has a tail, as they are in the database. */
  found(teamId: string, lastSeq: number, rolledSeq: Readonly<Record<RollSpeed, number>>): void {
    const state = this.#teams.get(teamId) ?? this.#add(teamId);
    for (const speed of speeds) state.tails[speed].rolledSeq = rolledSeq[speed];
    this.#note(state, lastSeq);
  }

  next(nowMs: number): RollJob | null {
    for (const speed of speeds) {
      if (nowMs < this.#earliestMs(speed)) continue;
      for (const [teamId, state] of this.#teams) {
        if (nowMs < this.#nextMs(state, speed)) continue;
        // The team's next turn comes after those of the others.
        this.#teams.delete(teamId);
        this.#teams.set(teamId, state);
        return { teamId, speed, rowsMax: this.#sizes[speed].rows };
      }
    }
    return null;
  }

  /** How long there is certainly nothing to do, unless something is written. */
  waitMs(nowMs: number): number {
    const earliestMs = Math.min(...speeds.map((speed) => this.#earliestMs(speed)));
    if (nowMs < earliestMs) return Math.max(1, earliestMs - nowMs);
    let nextMs = Infinity;
    for (const state of this.#teams.values()) {
      for (const speed of speeds) nextMs = Math.min(nextMs, this.#nextMs(state, speed));
    }
    return Math.max(1, nextMs - nowMs);
  }

  /** A roll has succeeded, or found nothing to do. No marks: another process is rolling up the team. */
  rolled(
    { teamId, speed }: RollJob,
    { rows, marks, counter }: Rolled,
    { tookMs, nowMs }: { tookMs: number; nowMs: number },
  ): void {
    this.#sizes[speed].note(rows, tookMs);
    const state = this.#teams.get(teamId);
    if (!state) return;
    if (!marks) {
      for (const tail of Object.values(state.tails)) {
        tail.pausedUntilMs = Math.max(tail.pausedUntilMs, nowMs + limits.hotRollIdleMs);
      }
      return;
    }
    state.tails[speed].failures = 0;
    this.found(teamId, counter.lastSeq, marks.rolledSeq);
    const isDone = speeds.every((each) => tailOf(state, each) <= 0);
    if (isDone) this.#teams.delete(teamId);
  }

  /** The other rollups of the team and those of other teams are not affected. */
  failed({ teamId, speed }: RollJob, nowMs: number): void {
    this.#sizes[speed].halve();
    const tail = this.#teams.get(teamId)?.tails[speed];
    if (!tail) return;
    const pauseMs = limits.rollRetryMsMin * 2 ** Math.min(tail.failures, 16);
    tail.failures += 1;
    tail.pausedUntilMs = nowMs + Math.min(pauseMs, limits.rollRetryMsMax);
  }

  #add(teamId: string): TeamState {
    const state = { lastSeq: 0, tails: { hot: unknownTail(), wide: unknownTail() } };
    this.#teams.set(teamId, state);
    return state;
  }

  #note(state: TeamState, lastSeq: number): void {
    state.lastSeq = Math.max(state.lastSeq, lastSeq);
    for (const speed of speeds) {
      const tail = tailOf(state, speed);
      const { isDraining } = state.tails[speed];
      this.#count(speed, state.tails[speed], Math.max(0, tail));
      const isToDrain = tail >= this.#bounds[speed] || (isDraining && tail > this.#rests[speed]);
      this.#draining[speed] += Number(isToDrain) - Number(isDraining);
      state.tails[speed].isDraining = isToDrain;
    }
  }

  /** Until then nothing is due. Known without a look at the teams: there may be many, and this is asked with each message. */
  #earliestMs(speed: RollSpeed): number {
    if (this.#teams.size === 0) return Infinity;
    return this.#draining[speed] > 0 ? -Infinity : this.#lastWriteMs + idleMsOf(speed);
  }

  #count(speed: RollSpeed, tail: TailState, rows: number): void {
    this.#tails[speed] += rows - tail.countedRows;
    tail.countedRows = rows;
  }

  #nextMs(state: TeamState, speed: RollSpeed): number {
    const { isDraining, pausedUntilMs } = state.tails[speed];
    if (tailOf(state, speed) <= 0) return Infinity;
    if (isDraining) return pausedUntilMs;
    return Math.max(pausedUntilMs, this.#lastWriteMs + idleMsOf(speed));
  }
}

const unknownSeq = -1;

function idleMsOf(speed: RollSpeed): number {
  return speed === 'hot' ? limits.hotRollIdleMs : limits.wideRollIdleMs;
}

function unknownTail(): TailState {
  return {
    rolledSeq: unknownSeq,
    isDraining: false,
    pausedUntilMs: -Infinity,
    failures: 0,
    countedRows: 0,
  };
}

function tailOf({ lastSeq, tails }: TeamState, speed: RollSpeed): number {
  return lastSeq - tails[speed].rolledSeq;
}
