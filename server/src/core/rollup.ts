import { limits } from '../limits.ts';
import { dayOf } from './clock.ts';
import { splitCost } from './money.ts';
import type { CostParts } from './money.ts';
import type { LabelName, NarrowTrace } from './trace-fields.ts';

/** The summed values. The names are the column names in every store. */
export const measureNames = [
  'calls',
  'errors',
  'latency_sum',
  'latency_count',
  'prompt_tokens',
  'completion_tokens',
  'cost_micros',
  'cost_picos',
] as const;
type MeasureName = (typeof measureNames)[number];

/** Stored sums. They may exceed 2^53, so they are BigInt. */
export type Measures = Record<MeasureName, bigint>;
/** Sums of one batch, which are below 2^53. */
type BatchMeasures = Record<MeasureName, number>;

export const noMeasures: Readonly<Measures> = Object.freeze(
  Object.fromEntries(measureNames.map((name) => [name, 0n])) as Measures,
);

/** What the sums are grouped by. The numbers are stored, so they never change. */
export const dimensions = { total: 0, model: 1, feature: 2, user: 3 } as const;
export type Dimension = (typeof dimensions)[keyof typeof dimensions];

/** The label whose values are the groups of a dimension. */
export const labelOf = {
  model: 'model',
  feature: 'feature_name',
  user: 'user_identifier',
} as const satisfies Partial<Record<keyof typeof dimensions, LabelName>>;

/** Without a label all traces form one group. */
const dimensionList: readonly { number: Dimension; label: LabelName | null; isDaily: boolean }[] = [
  { number: dimensions.total, label: null, isDaily: true },
  { number: dimensions.model, label: labelOf.model, isDaily: true },
  { number: dimensions.feature, label: labelOf.feature, isDaily: true },
  { number: dimensions.user, label: labelOf.user, isDaily: false },
];

/** The day of the row for all time. No real day is negative. */
export const allTime = -1;

/** Identifies a rollup by dimension, day and group. */
export interface RollupId {
  dimension: Dimension;
  day: number;
  group: string;
}

export interface Rollup extends RollupId {
  measures: Measures;
}

/** What a batch adds to one rollup. */
export interface RollupDelta extends RollupId {
  measures: BatchMeasures;
}

/** Adds up one team's traces in memory, so that a store writes each rollup once per batch. */
export class RollupBatch {
  /** By day, then by dimension number. All time is computed as their sum. */
  readonly #days = new Map<number, MeasuresByGroup[]>();
  #rows = 0;

  /** A full batch must be written before more is added, or its sums could exceed 2^53. */
  get isFull(): boolean {
    return this.#rows >= limits.rollupBatchRowsMax;
  }

  add(trace: NarrowTrace, createdAtUs: number): void {
    if (this.isFull) throw new Error('the rollup batch is full');
    this.#rows += 1;
    const day = this.#dayOf(createdAtUs);
    const cost = trace.cost_usd === null ? noCost : splitCost(trace.cost_usd);
    for (const { number, label } of dimensionList) {
      const group = label === null ? '' : trace[label];
      if (group !== null) count(groupAt(day[number], group), trace, cost);
    }
  }

  /** Sorted by group, so that two writers cannot deadlock and upserts visit the index in order. */
  deltas(): RollupDelta[] {
    const days = [...this.#days].sort(([a], [b]) => a - b);
    return dimensionList.flatMap(({ number: dimension, isDaily }) => {
      const sumsOfDays = days.map(([day, sums]) => ({ day, sums: sums[dimension] ?? new Map() }));
      const ranges = [{ day: allTime, sums: addAll(sumsOfDays.map(({ sums }) => sums)) }];
      if (isDaily) ranges.push(...sumsOfDays);
      return ranges.flatMap(({ day, sums }) =>
        [...sums].sort(byGroup).map(([group, measures]) => ({ dimension, day, group, measures })),
      );
    });
  }

  #dayOf(createdAtUs: number): MeasuresByGroup[] {
    const day = dayOf(createdAtUs);
    let sums = this.#days.get(day);
    if (!sums) {
      sums = dimensionList.map(() => new Map());
      this.#days.set(day, sums);
    }
    return sums;
  }
}

type MeasuresByGroup = Map<string, BatchMeasures>;

function count(measures: BatchMeasures, trace: NarrowTrace, cost: CostParts): void {
  measures.calls += 1;
  if (trace.status === 'error') measures.errors += 1;
  if (trace.latency_ms !== null) {
    measures.latency_sum += trace.latency_ms;
    measures.latency_count += 1;
  }
  measures.prompt_tokens += trace.prompt_tokens ?? 0;
  measures.completion_tokens += trace.completion_tokens ?? 0;
  measures.cost_micros += cost.micros;
  measures.cost_picos += cost.picos;
}

function groupAt(groups: MeasuresByGroup | undefined, group: string): BatchMeasures {
  let measures = groups?.get(group);
  if (!measures) {
    measures = { ...noBatchMeasures };
    groups?.set(group, measures);
  }
  return measures;
}

const noBatchMeasures = Object.fromEntries(measureNames.map((name) => [name, 0])) as BatchMeasures;

/** There is almost always only one day. */
function addAll(days: readonly MeasuresByGroup[]): MeasuresByGroup {
  if (days.length === 1 && days[0]) return days[0];
  const all: MeasuresByGroup = new Map();
  for (const day of days) {
    for (const [group, own] of day) {
      const sum = groupAt(all, group);
      for (const name of measureNames) sum[name] += own[name];
    }
  }
  return all;
}

function byGroup([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const noCost: CostParts = { micros: 0, picos: 0 };

/** A rollup's id as a string, for lookups and for messages. */
export function rollupName({ dimension, day, group }: RollupId): string {
  return `${dimension}/${day}/${group}`;
}
