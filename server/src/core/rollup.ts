import { limits } from '../limits.ts';
import { dayOf } from './clock.ts';
import { splitCost } from './money.ts';
import type { CostParts } from './money.ts';
import type { TraceDraft } from './trace.ts';

/** What the sums are kept by. The numbers are stored: they never change their meaning. */
export const dimensions = { total: 0, model: 1, feature: 2, user: 3 } as const;
export type Dimension = (typeof dimensions)[keyof typeof dimensions];

/** The row that holds all days together. No real day is negative. */
export const allTime = -1;

export interface RollupKey {
  dimension: Dimension;
  day: number;
  key: string;
}

/** Sums of one batch, which stay below 2^53. Stored sums are read as `Tally`. */
interface Sums {
  calls: number;
  errors: number;
  latencySum: number;
  latencyCount: number;
  promptTokens: number;
  completionTokens: number;
  costMicros: number;
  costPicos: number;
}

export interface RollupDelta extends RollupKey, Sums {}

/** Stored sums. They may pass 2^53, so they are read as BigInt. */
export interface Tally {
  calls: bigint;
  errors: bigint;
  latencySum: bigint;
  latencyCount: bigint;
  promptTokens: bigint;
  completionTokens: bigint;
  costMicros: bigint;
  costPicos: bigint;
}

export const emptyTally: Tally = Object.freeze({
  calls: 0n,
  errors: 0n,
  latencySum: 0n,
  latencyCount: 0n,
  promptTokens: 0n,
  completionTokens: 0n,
  costMicros: 0n,
  costPicos: 0n,
});

/** What of a trace is counted. */
export type CountedTrace = Omit<TraceDraft, 'input' | 'output' | 'errorMessage'>;

/** Adds up one team's traces in memory, so that a store writes each key once a batch. */
export class RollupBatch {
  /** By day, then by the number of the dimension. All time is their sum. */
  readonly #days = new Map<number, SumsByKey[]>();
  #rows = 0;

  /** A full batch must be written before more is added, or its sums could pass 2^53. */
  get isFull(): boolean {
    return this.#rows >= limits.rollupBatchRowsMax;
  }

  add(trace: CountedTrace, createdAtUs: number): void {
    if (this.isFull) throw new Error('the rollup batch is full');
    this.#rows += 1;
    const [total, model, feature, user] = this.#dayOf(createdAtUs);
    const cost = trace.costUsd === null ? noCost : splitCost(trace.costUsd);
    count(total, '', trace, cost);
    count(model, trace.model, trace, cost);
    count(feature, trace.featureName, trace, cost);
    count(user, trace.userIdentifier, trace, cost);
  }

  /** Keys are sorted so that two writers can never deadlock, and so that upserts walk the tree in one direction. */
  deltas(): RollupDelta[] {
    const days = [...this.#days].sort(([a], [b]) => a - b);
    return Object.values(dimensions).flatMap((dimension) => {
      const sumsOfDays = days.map(([day, sums]) => ({ day, sums: sums[dimension] ?? new Map() }));
      const ranges = [{ day: allTime, sums: addAll(sumsOfDays.map(({ sums }) => sums)) }];
      if (dimension !== dimensions.user) ranges.push(...sumsOfDays);
      return ranges.flatMap(({ day, sums }) =>
        [...sums].sort(byKey).map(([key, own]) => ({ dimension, day, key, ...own })),
      );
    });
  }

  #dayOf(createdAtUs: number): SumsByKey[] {
    const day = dayOf(createdAtUs);
    let sums = this.#days.get(day);
    if (!sums) {
      sums = Object.values(dimensions).map(() => new Map());
      this.#days.set(day, sums);
    }
    return sums;
  }
}

type SumsByKey = Map<string, Sums>;

function count(
  sumsByKey: SumsByKey | undefined,
  key: string | null,
  trace: CountedTrace,
  cost: CostParts,
): void {
  if (key === null || !sumsByKey) return;
  const sums = sumsAt(sumsByKey, key);
  sums.calls += 1;
  if (trace.status === 'error') sums.errors += 1;
  if (trace.latencyMs !== null) {
    sums.latencySum += trace.latencyMs;
    sums.latencyCount += 1;
  }
  sums.promptTokens += trace.promptTokens ?? 0;
  sums.completionTokens += trace.completionTokens ?? 0;
  sums.costMicros += cost.micros;
  sums.costPicos += cost.picos;
}

function sumsAt(sumsByKey: SumsByKey, key: string): Sums {
  let sums = sumsByKey.get(key);
  if (!sums) {
    sums = { ...nothing };
    sumsByKey.set(key, sums);
  }
  return sums;
}

const nothing: Sums = {
  calls: 0,
  errors: 0,
  latencySum: 0,
  latencyCount: 0,
  promptTokens: 0,
  completionTokens: 0,
  costMicros: 0,
  costPicos: 0,
};

/** Nearly always there is one day. */
function addAll(days: readonly SumsByKey[]): SumsByKey {
  if (days.length === 1 && days[0]) return days[0];
  const all: SumsByKey = new Map();
  for (const day of days) {
    for (const [key, own] of day) {
      const sums = sumsAt(all, key);
      for (const name of Object.keys(nothing) as (keyof Sums)[]) sums[name] += own[name];
    }
  }
  return all;
}

function byKey([a]: [string, Sums], [b]: [string, Sums]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const noCost: CostParts = { micros: 0, picos: 0 };

/** One text for one key: to look it up, and to show it to a person. */
export function rollupName({ dimension, day, key }: RollupKey): string {
  return `${dimension}/${day}/${key}`;
}
