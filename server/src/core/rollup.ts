import { hash } from 'node:crypto';
import { mondayOf } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { compile } from './compile.ts';
import { dimensionSets, grainNumbers, setsOf } from './dimensions.ts';
import type { DimensionField, DimensionSet, Grain, RollSpeed } from './dimensions.ts';
import { MeasuresBatch, addMeasures, copyOf } from './measures.ts';
import type { Measures } from './measures.ts';
import { costOf } from './trace-cost.ts';
import type { NarrowTrace, TraceStatus } from './trace-fields.ts';

/** A trace as far as it is added up. */
export interface CountedTrace extends NarrowTrace {
  createdAtUs: number;
}

/** When the call happened: it decides the day and the hour. */
export function eventUs(trace: CountedTrace): number {
  return startOfCall(trace, trace.createdAtUs);
}

/** When the call began, or when it was reported. */
export function startOfCall({ started_at }: NarrowTrace, reportedUs: number): number {
  return started_at ?? reportedUs;
}

/** One combination of values. Fields that its set does not have are absent. */
export interface Group extends Partial<Readonly<Record<DimensionField, string | null>>> {
  readonly status: TraceStatus;
}

/** Identifies a rollup of a team. */
export interface RollupId {
  set: number;
  grain: number;
  bucket: number;
  group: Group;
}

export interface Rollup extends RollupId {
  /** Several rollups share one object if they have the same traces. */
  measures: Readonly<Measures>;
}

/** All time is one bucket. */
export const allTimeBucket = 0;

/** The bucket of a time: 0, the Monday of the local week, the local day since 1970, or the second in which the local hour starts. */
export function bucketAt(grain: Grain, us: number, calendar: Calendar): number {
  if (grain === 'all') return allTimeBucket;
  if (grain === 'hour') return calendar.hourOf(us);
  const day = calendar.dayOf(us);
  return grain === 'week' ? mondayOf(day) : day;
}

/** When an hour, day or week begins, in microseconds. */
export function startOfBucket(grain: number, bucket: number, calendar: Calendar): number {
  return grain === grainNumbers.hour ? bucket * 1_000_000 : calendar.startOfDay(bucket);
}

/** Text that is different for every group of a set: labels cannot contain control characters. */
type GroupName = string;

const setFunctions = new Map(
  dimensionSets.map((set): [number, SetFunctions] => [set.number, functionsOf(set)]),
);

interface SetFunctions {
  nameOf(trace: NarrowTrace): GroupName;
  groupOf(trace: NarrowTrace): Group;
}

function functionsOf({ fields }: DimensionSet): SetFunctions {
  const parts = ['trace.status', ...fields.map((field) => `(trace.${field} ?? '\\u0001')`)];
  return {
    nameOf: compile(`(trace) => ${parts.join(` + '\\u0000' + `)}`),
    groupOf: compile(
      `(trace) => ({ ${['status', ...fields].map((name) => `${name}: trace.${name}`).join(', ')} })`,
    ),
  };
}

function functionsFor(set: number): SetFunctions {
  const functions = setFunctions.get(set);
  if (!functions) throw new Error(`there is no dimension set ${set}`);
  return functions;
}

/** Identifies a group in a store: 128 bits of a hash of its values. */
export function groupHash({ set, group }: Pick<RollupId, 'set' | 'group'>): Buffer {
  const name = functionsFor(set).nameOf(group as unknown as NarrowTrace);
  return hash('sha256', `${set}\u0000${name}`, 'buffer').subarray(0, 16);
}

/**
 * Adds traces up into the rollups of some sets. Everything that sums traces uses it: the roller, the tail of a read, and `verify`.
 */
export class RollupFold {
  readonly #calendar: Calendar;
  readonly #sets: readonly SetFold[];

  /** For all sets of a speed, or for some sets. */
  constructor(sets: RollSpeed | readonly DimensionSet[], calendar: Calendar) {
    this.#calendar = calendar;
    const own = typeof sets === 'string' ? setsOf(sets) : sets;
    this.#sets = own.map((set) => new SetFold(set));
  }

  add(trace: CountedTrace): void {
    this.addNew(trace, trace.createdAtUs);
  }

  /** A trace that has just got its time. */
  addNew(trace: NarrowTrace, createdAtUs: number): void {
    const us = startOfCall(trace, createdAtUs);
    const cost = costOf(trace);
    for (const set of this.#sets) set.add(trace, us, cost, this.#calendar);
  }

  /** How many rollups there are at most: coarser grains may have fewer. */
  get size(): number {
    return this.#sets.reduce((sum, set) => sum + set.size, 0);
  }

  /** Every grain of every set. */
  rollups(): Rollup[] {
    return this.#sets.flatMap((set) => set.rollups(this.#calendar));
  }

  /** The finest grain of one set. */
  finest(set: number): Rollup[] {
    return this.#sets.find((own) => own.number === set)?.finest() ?? [];
  }
}

interface GroupBatch {
  group: Group;
  batch: MeasuresBatch;
}

class SetFold {
  readonly number: number;
  readonly #grains: readonly Grain[];
  readonly #finest: Grain;
  readonly #functions: SetFunctions;
  /** By the bucket of the finest grain, then by group. */
  readonly #buckets = new Map<number, Map<GroupName, GroupBatch>>();
  #groups = 0;

  constructor({ number, grains }: DimensionSet) {
    this.number = number;
    this.#grains = grains;
    this.#finest = grains.at(-1) ?? 'all';
    this.#functions = functionsFor(number);
  }

  add(trace: NarrowTrace, us: number, cost: ReturnType<typeof costOf>, calendar: Calendar): void {
    const bucket = bucketAt(this.#finest, us, calendar);
    let groups = this.#buckets.get(bucket);
    if (!groups) this.#buckets.set(bucket, (groups = new Map()));
    const name = this.#functions.nameOf(trace);
    let found = groups.get(name);
    if (!found) {
      found = { group: this.#functions.groupOf(trace), batch: new MeasuresBatch() };
      groups.set(name, found);
      this.#groups += 1;
    }
    found.batch.add(trace, cost);
  }

  get size(): number {
    return this.#groups * this.#grains.length;
  }

  finest(): Rollup[] {
    return this.#finestByName().map(({ rollup }) => rollup);
  }

  rollups(calendar: Calendar): Rollup[] {
    let finer = this.#finestByName();
    const all = [finer];
    for (const grain of this.#grains.slice(0, -1).toReversed()) {
      finer = this.#coarser(finer, grain, calendar);
      all.push(finer);
    }
    return all.flatMap((named) => named.map(({ rollup }) => rollup));
  }

  #finestByName(): NamedRollup[] {
    const [set, grain] = [this.number, grainNumbers[this.#finest]];
    const named: NamedRollup[] = [];
    for (const [bucket, groups] of this.#buckets) {
      for (const [name, { group, batch }] of groups) {
        named.push({
          name,
          rollup: { set, grain, bucket, group, measures: batch.total() },
          own: null,
        });
      }
    }
    return named;
  }

  #coarser(finer: readonly NamedRollup[], grain: Grain, calendar: Calendar): NamedRollup[] {
    const buckets = new Map<number, Map<GroupName, NamedRollup>>();
    for (const { name, rollup } of finer) {
      const { group, measures } = rollup;
      const bucket = bucketAt(
        grain,
        startOfBucket(rollup.grain, rollup.bucket, calendar),
        calendar,
      );
      let groups = buckets.get(bucket);
      if (!groups) buckets.set(bucket, (groups = new Map()));
      const known = groups.get(name);
      if (known) {
        known.own ??= copyOf(known.rollup.measures);
        addMeasures(known.own, measures);
        known.rollup.measures = known.own;
      } else {
        const id = { set: this.number, grain: grainNumbers[grain], bucket, group };
        groups.set(name, { name, rollup: { ...id, measures }, own: null });
      }
    }
    return [...buckets.values()].flatMap((groups) => [...groups.values()]);
  }
}

interface NamedRollup {
  name: GroupName;
  rollup: Rollup;
  /** Its measures if it shares them with no other rollup. */
  own: Measures | null;
}
