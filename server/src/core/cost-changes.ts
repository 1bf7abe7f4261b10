import type { CountedTrace } from './rollup.ts';
import type { Cost } from './trace-cost.ts';

/** A stored trace whose cost may change. */
export interface RepricedTrace extends CountedTrace {
  seq: number;
}

/** The trace as it was, and its new cost. */
export interface CostChange {
  trace: RepricedTrace;
  cost: Cost;
}
