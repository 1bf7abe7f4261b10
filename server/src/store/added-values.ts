import type { Measures } from '../core/measures.ts';
import { summedNames } from '../core/trace-fields.ts';

const picosPerMicro = 1_000_000n;

/** What measures add to the columns of a rollup, in the order of `addedColumns`; negative if they are taken away. */
export function addedValues(measures: Readonly<Measures>, sign: 1 | -1): (number | bigint)[] {
  const { calls, uncosted_calls: uncosted, latency_count: count, cost_picos: picos } = measures;
  const big = [
    measures.latency_sum,
    picos / picosPerMicro,
    picos % picosPerMicro,
    ...summedNames.map((name) => measures[name]),
  ];
  if (sign === 1) return [calls, uncosted, count, ...big];
  return [-calls, -uncosted, -count, ...big.map((value) => -value)];
}
