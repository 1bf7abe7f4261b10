import type { Calendar } from '../core/calendar.ts';
import { calendarOf } from '../core/calendar.ts';
import { formatDay, formatTimestamp } from '../core/clock.ts';
import { grainNumbers } from '../core/dimensions.ts';
import type { RollSpeed } from '../core/dimensions.ts';
import type { Measures } from '../core/measures.ts';
import { decodeMeasures } from '../core/measures-sum.ts';
import { RollupFold, groupHash } from '../core/rollup.ts';
import type { CountedTrace, Group, RollupId } from '../core/rollup.ts';
import { messageOf } from '../errors.ts';
import { limits } from '../limits.ts';
import type { AuditedRollup } from '../store/audit.ts';
import { deltasOf } from '../store/rollup-rows.ts';
import type { RollupDelta, StoredSums } from '../store/rollup-rows.ts';
import type { TeamMarks } from '../store/team-marks.ts';
import type { FindingList } from './finding-list.ts';
import { SumsFile, SumsInMemory } from './recounted-sums.ts';

const speeds: readonly RollSpeed[] = ['hot', 'wide'];

/**
 * Adds a team's traces up again and compares the result with the stored rollups. A team may have millions of groups, so sums that
 * are too many for the memory are kept in a temporary file.
 */
export class RollupRecount implements Disposable {
  readonly #marks: TeamMarks;
  readonly #calendar: Calendar;
  readonly #folds: Record<RollSpeed, RollupFold>;
  #unsavedRows = 0;
  #file: SumsFile | null = null;

  constructor(marks: TeamMarks) {
    this.#marks = marks;
    this.#calendar = calendarOf(marks.timeZone);
    this.#folds = { hot: this.#newFold('hot'), wide: this.#newFold('wide') };
  }

  [Symbol.dispose](): void {
    this.#file?.[Symbol.dispose]();
  }

  #newFold(speed: RollSpeed): RollupFold {
    return new RollupFold(speed, this.#calendar);
  }

  /** Adds a trace to the sums that should contain it. */
  add(trace: CountedTrace & { seq: number }): void {
    for (const speed of speeds) {
      if (trace.seq <= this.#marks.rolledSeq[speed]) this.#folds[speed].add(trace);
    }
    this.#unsavedRows += 1;
    if (this.#isFull()) this.#save();
  }

  #isFull(): boolean {
    const { hot, wide } = this.#folds;
    return (
      this.#unsavedRows >= limits.recountRowsMax || hot.size + wide.size >= limits.recountRollupsMax
    );
  }

  #save(): SumsFile {
    this.#file ??= new SumsFile();
    this.#file.add(this.#takeDeltas());
    return this.#file;
  }

  #takeDeltas(): RollupDelta[] {
    const deltas = speeds.flatMap((speed) => deltasOf(this.#folds[speed].rollups()));
    for (const speed of speeds) this.#folds[speed] = this.#newFold(speed);
    this.#unsavedRows = 0;
    return deltas;
  }

  /** Compares every stored rollup with the recounted one, and finds those that are missing. */
  async compare(
    stored: AsyncIterable<readonly AuditedRollup[]>,
    findings: FindingList,
  ): Promise<void> {
    const recounted = this.#file ? this.#save() : new SumsInMemory(this.#takeDeltas());
    for await (const chunk of stored) {
      for (const row of chunk) {
        // What is left in the end is missing from the store.
        compareRow(row, recounted.take(row), findings);
      }
    }
    for (const missing of recounted.rest()) findings.add(`rollup ${nameOf(missing)}: missing`);
  }
}

function compareRow(
  row: AuditedRollup,
  recounted: StoredSums | undefined,
  findings: FindingList,
): void {
  const { set, grain, bucket, hash, group } = row;
  if (group === null || Buffer.compare(groupHash({ set, group }), hash) !== 0) {
    const how = group === null ? 'missing' : 'different';
    const id = Buffer.from(hash).toString('hex');
    findings.add(`rollup of the group ${id}: the values of the group are ${how}`);
    return;
  }
  if (recounted && isSame(recounted, row)) return;
  const name = nameOf({ set, grain, bucket, group });
  if (!recounted) {
    findings.add(`rollup ${name}: it has no traces`);
    return;
  }
  for (const difference of differencesOf(row, recounted, group)) {
    findings.add(`rollup ${name}: ${difference}`);
  }
}

/** For people: the time and every value of the group. */
function nameOf({ grain, bucket, group }: RollupId): string {
  const values = Object.entries(group).map(([field, value]) => `${field}=${JSON.stringify(value)}`);
  return `${bucketName(grain, bucket)} ${values.join(' ')}`;
}

function bucketName(grain: number, bucket: number): string {
  if (grain === grainNumbers.all) return 'all time';
  if (grain === grainNumbers.hour) return `hour ${formatTimestamp(bucket * 1_000_000)}`;
  return `${grain === grainNumbers.week ? 'week of' : 'day'} ${formatDay(bucket)}`;
}

function isSame(a: StoredSums, b: StoredSums): boolean {
  return (
    a.calls === b.calls &&
    Buffer.compare(a.sums, b.sums) === 0 &&
    Buffer.compare(a.latencies, b.latencies) === 0
  );
}

function differencesOf(stored: StoredSums, recounted: StoredSums, { status }: Group): string[] {
  const isError = status === 'error';
  let found: Measures;
  try {
    found = decodeMeasures({ ...stored, isError });
  } catch (error) {
    return [`its sums cannot be decoded: ${messageOf(error)}`];
  }
  const right = decodeMeasures({ ...recounted, isError });
  const { latencies: foundLatencies, ...foundSums } = found;
  const { latencies: rightLatencies, ...rightSums } = right;
  const names = Object.keys(rightSums) as Exclude<keyof typeof rightSums, 'percentiles'>[];
  const differences = names
    .filter((name) => foundSums[name] !== rightSums[name])
    .map((name) => `${name} is ${foundSums[name]}, but the traces add up to ${rightSums[name]}`);
  const isSameHistogram =
    foundLatencies.size === rightLatencies.size &&
    [...rightLatencies].every(([bucket, count]) => foundLatencies.get(bucket) === count);
  if (!isSameHistogram) differences.push('its latency histogram differs from the traces');
  return differences.length > 0 ? differences : ['its stored bytes differ from the recounted ones'];
}
