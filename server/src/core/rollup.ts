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
export interface RollupDelta extends RollupKey {
  calls: number;
  errors: number;
  latencySum: number;
  latencyCount: number;
  promptTokens: number;
  completionTokens: number;
  costMicros: number;
  costPicos: number;
}

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
  readonly #deltas = new Map<string, RollupDelta>();
  #rows = 0;

  /** A full batch must be written before more is added, or its sums could pass 2^53. */
  get isFull(): boolean {
    return this.#rows >= limits.rollupBatchRowsMax;
  }

  add(trace: CountedTrace, createdAtUs: number): void {
    if (this.isFull) throw new Error('the rollup batch is full');
    this.#rows += 1;
    const day = dayOf(createdAtUs);
    const cost = trace.costUsd === null ? noCost : splitCost(trace.costUsd);
    this.#count(dimensions.total, day, '', trace, cost);
    this.#count(dimensions.total, allTime, '', trace, cost);
    this.#count(dimensions.model, day, trace.model, trace, cost);
    this.#count(dimensions.model, allTime, trace.model, trace, cost);
    if (trace.featureName !== null) {
      this.#count(dimensions.feature, day, trace.featureName, trace, cost);
      this.#count(dimensions.feature, allTime, trace.featureName, trace, cost);
    }
    if (trace.userIdentifier !== null) {
      this.#count(dimensions.user, allTime, trace.userIdentifier, trace, cost);
    }
  }

  /** Keys are sorted so that two writers can never deadlock, and so that upserts walk the tree in one direction. */
  deltas(): RollupDelta[] {
    return [...this.#deltas.values()].sort(compareKeys);
  }

  #count(
    dimension: Dimension,
    day: number,
    key: string,
    trace: CountedTrace,
    cost: CostParts,
  ): void {
    const name = rollupName({ dimension, day, key });
    let delta = this.#deltas.get(name);
    if (!delta) {
      delta = {
        dimension,
        day,
        key,
        calls: 0,
        errors: 0,
        latencySum: 0,
        latencyCount: 0,
        promptTokens: 0,
        completionTokens: 0,
        costMicros: 0,
        costPicos: 0,
      };
      this.#deltas.set(name, delta);
    }
    delta.calls += 1;
    if (trace.status === 'error') delta.errors += 1;
    if (trace.latencyMs !== null) {
      delta.latencySum += trace.latencyMs;
      delta.latencyCount += 1;
    }
    delta.promptTokens += trace.promptTokens ?? 0;
    delta.completionTokens += trace.completionTokens ?? 0;
    delta.costMicros += cost.micros;
    delta.costPicos += cost.picos;
  }
}

const noCost: CostParts = { micros: 0, picos: 0 };

/** One text for one key: to look it up, and to show it to a person. */
export function rollupName({ dimension, day, key }: RollupKey): string {
  return `${dimension}/${day}/${key}`;
}

function compareKeys(a: RollupKey, b: RollupKey): number {
  return a.dimension - b.dimension || a.day - b.day || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}
