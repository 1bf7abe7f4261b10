import type { DatabaseSync } from 'node:sqlite';
import { mondayOf } from '../../core/calendar.ts';
import { grainNumbers } from '../../core/dimensions.ts';
import type { DimensionSet } from '../../core/dimensions.ts';
import type { Tile } from '../../core/query-plan.ts';
import { allTimeBucket } from '../../core/rollup.ts';
import { prepareArrays } from './counted-traces.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** Says how often the rollups of a bucket have changed: what was read from it is right as long as the number is the same. */
export class BucketChanges {
  readonly #ofDays;
  readonly #ever;

  constructor(db: DatabaseSync) {
    const ofTeam = 'from rollup_days where team_no = ? and generation = ?';
    const days = (speed: string) =>
      prepareArrays(db, `select day, ${speed}_changes ${ofTeam} and day >= ? and day < ?`);
    const ever = (speed: string) => prepareArrays(db, `select sum(${speed}_changes) ${ofTeam}`);
    this.#ofDays = { hot: days('hot'), wide: days('wide') };
    this.#ever = { hot: ever('hot'), wide: ever('wide') };
  }

  /** Of the buckets of a tile of days, weeks or all time that have rollups: a week changes as often as all of its days. */
  of(
    { teamNo, marks }: TeamSnapshot,
    { speed }: DimensionSet,
    { grain, fromBucket, toBucket }: Tile,
  ): Map<number, number> {
    const changes = new Map<number, number>();
    if (grain === grainNumbers.all) {
      const count = this.#ever[speed].all(teamNo, marks.generation)[0]?.[0] as number | null;
      return count ? changes.set(allTimeBucket, count) : changes;
    }
    const days = this.#ofDays[speed].all(teamNo, marks.generation, fromBucket, toBucket);
    for (const [day, count] of days as unknown as (readonly [number, number])[]) {
      if (count === 0) continue;
      const bucket = grain === grainNumbers.week ? mondayOf(day) : day;
      changes.set(bucket, (changes.get(bucket) ?? 0) + count);
    }
    return changes;
  }
}
