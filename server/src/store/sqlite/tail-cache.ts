import type { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import type { DimensionSet, RollSpeed } from '../../core/dimensions.ts';
import { RecentMap } from '../../core/recent-map.ts';
import { RollupFold } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import { openCountedTraces } from './counted-traces.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

interface Tail {
  generation: number;
  rolledSeq: number;
  /** The last trace that is in the fold. */
  lastSeq: number;
  fold: RollupFold;
}

/**
 * The sums of the traces after each team's marks. A tail only grows until the next roll, so a read adds only what is new since the
 * last one.
 */
export class TailCache {
  readonly #traces;
  readonly #tails = new RecentMap<Tail>(limits.tailSumsKeptMax, ({ fold }) => fold.size);

  constructor(db: DatabaseSync) {
    this.#traces = openCountedTraces(db);
  }

  /** How many traces the tail has. */
  rowsOf({ firstSeq, lastSeq, marks }: TeamSnapshot, speed: RollSpeed): number {
    return lastSeq - Math.max(marks.rolledSeq[speed], firstSeq - 1);
  }

  /** The whole tail, which must be short: each of its traces may be a group of its own, which a read has to add up. */
  foldOf(team: TeamSnapshot, speed: RollSpeed): RollupFold {
    return this.#extend(team, speed, this.#tailOf(team, speed));
  }

  /** However many traces it has. A long tail comes in parts, since each trace may be a group of its own. */
  *parts(team: TeamSnapshot, set: DimensionSet): Generator<RollupFold> {
    const { teamNo, lastSeq, marks } = team;
    const tail = this.#tailOf(team, set.speed);
    if (lastSeq - tail.rolledSeq <= limits.tailPartRows) {
      yield this.#extend(team, set.speed, tail);
      return;
    }
    for (let afterSeq = tail.rolledSeq; afterSeq < lastSeq; afterSeq += limits.tailPartRows) {
      const fold = new RollupFold([set], calendarOf(marks.timeZone));
      const toSeq = Math.min(lastSeq, afterSeq + limits.tailPartRows);
      this.#traces.each(teamNo, { afterSeq, toSeq }, allRows, (trace) => fold.add(trace));
      yield fold;
    }
  }

  #extend(team: TeamSnapshot, speed: RollSpeed, tail: Tail): RollupFold {
    const { teamNo, lastSeq } = team;
    const range = { afterSeq: tail.lastSeq, toSeq: lastSeq };
    this.#traces.each(teamNo, range, allRows, (trace) => tail.fold.add(trace));
    tail.lastSeq = lastSeq;
    const name = nameOf(team, speed);
    if (tail.fold.size > 0) this.#tails.keep(name, tail);
    else this.#tails.forget(name);
    return tail.fold;
  }

  /** The tail as far as it is known. */
  #tailOf(team: TeamSnapshot, speed: RollSpeed): Tail {
    const { firstSeq, lastSeq, marks } = team;
    const { generation } = marks;
    const rolledSeq = Math.max(marks.rolledSeq[speed], firstSeq - 1);
    const known = this.#tails.get(nameOf(team, speed));
    const isSame = known?.generation === generation && known.rolledSeq === rolledSeq;
    if (isSame && known.lastSeq <= lastSeq) return known;
    const fold = new RollupFold(speed, calendarOf(marks.timeZone));
    return { generation, rolledSeq, lastSeq: rolledSeq, fold };
  }
}

/** No limit, for SQLite. */
const allRows = -1;

function nameOf({ teamNo }: TeamSnapshot, speed: RollSpeed): string {
  return `${speed} ${teamNo}`;
}
