import type { MeasuresSum } from '../../core/measures-sum.ts';
import type { TallySheet } from '../../core/tally-sheet.ts';
import { addRollup } from './packed-bucket.ts';
import type { TileBucket } from './packed-rollups.ts';

/** Adds packed buckets of one set to a sheet. What a group is added to is found once, not for each of its rollups. */
export class PackedSums {
  readonly #sheet: TallySheet;
  readonly #hasIntervals: boolean;
  readonly #talliesMax: number;
  /** By the number of the group; null if the query does not ask for it. */
  #sums: (MeasuresSum | null | undefined)[] = [];

  constructor(sheet: TallySheet, hasIntervals: boolean, talliesMax: number) {
    this.#sheet = sheet;
    this.#hasIntervals = hasIntervals;
    this.#talliesMax = talliesMax;
  }

  /** False if the sheet has more than `talliesMax` tallies. */
  add(grain: number, { bucket, packed, directory }: TileBucket): boolean {
    const { groups } = packed;
    // The next bucket may be in another interval. Whether a group is asked for does not depend on it.
    if (this.#hasIntervals) this.#sums = this.#sums.map((sum) => (sum === null ? null : undefined));
    const sums = this.#sums;
    for (let i = 0; i < groups.length; i++) {
      const number = groups[i] ?? 0;
      let sum = sums[number];
      if (sum === null) continue;
      if (sum === undefined) {
        sum = this.#sheet.sumOf({ grain, bucket, group: directory.groupAt(number) });
        if (this.#sheet.size > this.#talliesMax) return false;
        while (sums.length <= number) sums.push(undefined);
        sums[number] = sum;
        if (sum === null) continue;
      }
      addRollup(sum, packed, i, directory.isErrorAt(number));
    }
    return true;
  }
}
