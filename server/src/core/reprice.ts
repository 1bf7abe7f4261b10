import type { CostChange, RepricedTrace } from './cost-changes.ts';
import type { Pricer } from './prices/pricer.ts';
import { eventUs } from './rollup.ts';
import { computedCost, costOf, isSameCost, isSentCost } from './trace-cost.ts';
import type { Cost } from './trace-cost.ts';

/** Which costs are computed again: only missing ones, computed ones too, or also those that clients sent. */
export type CostScope = 'uncosted' | 'computed' | 'all';

/** Which traces are priced again. */
export interface RepriceFilter {
  /** When the call began; null for no bound. */
  fromUs: number | null;
  toUs: number | null;
  model: string | null;
  scope: CostScope;
}

/** The sums of one model. Costs are pico-dollars. */
export interface ModelResult {
  /** Null for all models beyond the first ones. */
  model: string | null;
  traces: number;
  changed: number;
  uncostedBefore: number;
  uncostedAfter: number;
  before: bigint;
  after: bigint;
}

/** The new cost of a trace. If no price is known, a cost that a client sent stays; a computed one is removed. */
export function newCostOf(trace: RepricedTrace, pricer: Pricer, teamId: string): Cost {
  const computed = computedCost(pricer, trace, teamId, eventUs(trace));
  return costOf(computed) === null && isSentCost(trace) ? trace : computed;
}

/** What has been looked at so far, by model. The number of models is bounded, since callers choose their names. */
export class RepriceResult {
  readonly #modelsMax: number;
  readonly #models = new Map<string | null, ModelResult>();

  constructor(modelsMax: number, models: readonly ModelResult[] = []) {
    this.#modelsMax = modelsMax;
    for (const model of models) this.#models.set(model.model, { ...model });
  }

  copy(): RepriceResult {
    return new RepriceResult(this.#modelsMax, this.models());
  }

  /** Prices a trace again, and adds it to the sums. Null if its cost stays the same. */
  add(trace: RepricedTrace, pricer: Pricer, teamId: string): CostChange | null {
    const cost = newCostOf(trace, pricer, teamId);
    const isChanged = !isSameCost(trace, cost);
    const sums = this.#of(trace.model);
    const [before, after] = [picosOf(trace), picosOf(cost)];
    sums.traces += 1;
    if (isChanged) sums.changed += 1;
    if (before === null) sums.uncostedBefore += 1;
    if (after === null) sums.uncostedAfter += 1;
    sums.before += before ?? 0n;
    sums.after += after ?? 0n;
    return isChanged ? { trace, cost } : null;
  }

  /** The largest change first. */
  models(): ModelResult[] {
    return [...this.#models.values()].sort(
      (a, b) => compare(differenceOf(b), differenceOf(a)) || b.traces - a.traces,
    );
  }

  total(): ModelResult {
    const total = noResult(null);
    for (const sums of this.#models.values()) {
      total.traces += sums.traces;
      total.changed += sums.changed;
      total.uncostedBefore += sums.uncostedBefore;
      total.uncostedAfter += sums.uncostedAfter;
      total.before += sums.before;
      total.after += sums.after;
    }
    return total;
  }

  #of(model: string): ModelResult {
    const isKnown = this.#models.has(model) || this.#models.size < this.#modelsMax;
    const name = isKnown ? model : null;
    let sums = this.#models.get(name);
    if (!sums) this.#models.set(name, (sums = noResult(name)));
    return sums;
  }
}

function noResult(model: string | null): ModelResult {
  return {
    model,
    traces: 0,
    changed: 0,
    uncostedBefore: 0,
    uncostedAfter: 0,
    before: 0n,
    after: 0n,
  };
}

function picosOf(cost: Cost): bigint | null {
  const parts = costOf(cost);
  return parts && BigInt(parts.micros) * 1_000_000n + BigInt(parts.picos);
}

function differenceOf({ before, after }: ModelResult): bigint {
  return after > before ? after - before : before - after;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
