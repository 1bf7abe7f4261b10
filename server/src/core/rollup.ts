import { hash } from 'node:crypto';
import { firstOfMonth, mondayOf } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { compile } from './compile.ts';
import { dimensionSets, grainNumbers } from './dimensions.ts';
import type { DimensionField, DimensionSet, Grain } from './dimensions.ts';
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

/**
 * The bucket of a time: 0, the first day of the local month, the Monday of the local week, the local day since 1970, or the second in which
 * the local hour starts.
 */
export function bucketAt(grain: Grain, us: number, calendar: Calendar): number {
  if (grain === 'all') return allTimeBucket;
  if (grain === 'hour') return calendar.hourOf(us);
  const day = calendar.dayOf(us);
  if (grain === 'month') return firstOfMonth(day);
  return grain === 'week' ? mondayOf(day) : day;
}

/** When an hour, day, week or month begins, in microseconds. */
export function startOfBucket(grain: number, bucket: number, calendar: Calendar): number {
  return grain === grainNumbers.hour ? bucket * 1_000_000 : calendar.startOfDay(bucket);
}

const setFunctions = new Map(
  dimensionSets.map((set): [number, SetFunctions] => [set.number, functionsOf(set)]),
);

interface SetFunctions {
  /** Text that is different for every group of the set: labels cannot contain control characters. */
  nameOf(trace: NarrowTrace): string;
  groupOf(trace: NarrowTrace): Group;
  /** The groups that have the trace's values in all fields but the last. */
  siblingsOf(tree: GroupTree, trace: NarrowTrace): Map<string | null, GroupFold>;
  lastValueOf(trace: NarrowTrace): string | null;
}

/** Groups by their values, one level for each field. To look values up is several times as fast as to put a name together. */
interface GroupTree extends Map<string | null, GroupTree | GroupFold> {}

function functionsOf({ fields }: DimensionSet): SetFunctions {
  const parts = ['trace.status', ...fields.map((field) => `(trace.${field} ?? '\\u0001')`)];
  const descend = fields.slice(0, -1).map(
    (field) => `
      value = trace.${field} ?? null;
      next = tree.get(value);
      if (next === undefined) tree.set(value, (next = new Map()));
      tree = next;`,
  );
  const last = fields.at(-1);
  return {
    nameOf: compile(`(trace) => ${parts.join(` + '\\u0000' + `)}`),
    groupOf: compile(
      `(trace) => ({ ${['status', ...fields].map((name) => `${name}: trace.${name}`).join(', ')} })`,
    ),
    siblingsOf: compile(`(tree, trace) => { let value, next; ${descend.join('')} return tree; }`),
    lastValueOf: compile(`(trace) => ${last === undefined ? 'null' : `trace.${last} ?? null`}`),
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

  constructor(sets: readonly DimensionSet[], calendar: Calendar) {
    this.#calendar = calendar;
    this.#sets = sets.map((set) => new SetFold(set));
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

class SetFold {
  readonly number: number;
  readonly #grains: readonly Grain[];
  readonly #finest: Grain;
  readonly #functions: SetFunctions;
  readonly #trees: Readonly<Record<TraceStatus, GroupTree>> = {
    success: new Map(),
    error: new Map(),
  };
  readonly #groups: GroupFold[] = [];
  #batches = 0;

  constructor({ number, grains }: DimensionSet) {
    this.number = number;
    this.#grains = grains;
    this.#finest = grains.at(-1) ?? 'all';
    this.#functions = functionsFor(number);
  }

  add(trace: NarrowTrace, us: number, cost: ReturnType<typeof costOf>, calendar: Calendar): void {
    const tree = trace.status === 'error' ? this.#trees.error : this.#trees.success;
    const siblings = this.#functions.siblingsOf(tree, trace);
    const value = this.#functions.lastValueOf(trace);
    let group = siblings.get(value);
    if (!group) {
      group = new GroupFold(this.#functions.groupOf(trace));
      siblings.set(value, group);
      this.#groups.push(group);
    }
    const bucket = bucketAt(this.#finest, us, calendar);
    let batch = group.batchAt(bucket);
    if (!batch) {
      batch = group.open(bucket);
      this.#batches += 1;
    }
    batch.add(trace, cost);
  }

  get size(): number {
    return this.#batches * this.#grains.length;
  }

  finest(): Rollup[] {
    const [set, grain] = [this.number, grainNumbers[this.#finest]];
    return this.#groups.flatMap((group) => group.rollups(set, grain));
  }

  rollups(calendar: Calendar): Rollup[] {
    const coarser = this.#grains.slice(0, -1).toReversed();
    return this.#groups.flatMap((group) => {
      const finest = group.rollups(this.number, grainNumbers[this.#finest]);
      const all = [...finest];
      let finer = finest;
      for (const grain of coarser) {
        const own = inGrain(finer, grain, calendar);
        all.push(...own);
        // Months are not made of weeks.
        if (grain !== 'week') finer = own;
      }
      return all;
    });
  }
}

/** The traces of one group, by the bucket of the finest grain. */
class GroupFold {
  readonly #group: Group;
  /** The bucket of the last trace. Most batches have no other. */
  #bucket = NaN;
  #batch: MeasuresBatch | undefined;
  /** All of them, if there are several. */
  #batches: Map<number, MeasuresBatch> | null = null;

  constructor(group: Group) {
    this.#group = group;
  }

  /** Undefined if there was no trace in this bucket yet. */
  batchAt(bucket: number): MeasuresBatch | undefined {
    if (bucket === this.#bucket) return this.#batch;
    const found = this.#batches?.get(bucket);
    if (found) {
      this.#bucket = bucket;
      this.#batch = found;
    }
    return found;
  }

  open(bucket: number): MeasuresBatch {
    const batch = new MeasuresBatch();
    if (this.#batch) {
      this.#batches ??= new Map([[this.#bucket, this.#batch]]);
      this.#batches.set(bucket, batch);
    }
    this.#bucket = bucket;
    this.#batch = batch;
    return batch;
  }

  rollups(set: number, grain: number): Rollup[] {
    const id = { set, grain, group: this.#group };
    if (!this.#batches) {
      const [bucket, batch] = [this.#bucket, this.#batch];
      return batch ? [{ ...id, bucket, measures: batch.total() }] : [];
    }
    return Array.from(this.#batches, ([bucket, batch]) => ({
      ...id,
      bucket,
      measures: batch.total(),
    }));
  }
}

/** The rollups of one group in a coarser grain. One that contains a single finer one shares its measures. */
function inGrain(finer: readonly Rollup[], grain: Grain, calendar: Calendar): Rollup[] {
  const buckets = new Map<number, { rollup: Rollup; own: Measures | null }>();
  for (const { set, grain: finerGrain, bucket: finerBucket, group, measures } of finer) {
    const startUs = startOfBucket(finerGrain, finerBucket, calendar);
    const bucket = bucketAt(grain, startUs, calendar);
    const known = buckets.get(bucket);
    if (!known) {
      const rollup = { set, grain: grainNumbers[grain], bucket, group, measures };
      buckets.set(bucket, { rollup, own: null });
      continue;
    }
    known.own ??= copyOf(known.rollup.measures);
    addMeasures(known.own, measures);
    known.rollup.measures = known.own;
  }
  return Array.from(buckets.values(), ({ rollup }) => rollup);
}
