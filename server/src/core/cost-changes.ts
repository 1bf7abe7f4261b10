import type { Calendar } from './calendar.ts';
import type { RollSpeed } from './dimensions.ts';
import { subtractMeasures, copyOf } from './measures.ts';
import { RollupFold } from './rollup.ts';
import type { CountedTrace, Rollup } from './rollup.ts';
import type { Cost } from './trace-cost.ts';
import { fieldNames, traceFields } from './trace-fields.ts';

/** A stored trace whose cost may change. */
export interface RepricedTrace extends CountedTrace {
  seq: number;
}

/** The trace as it was, and its new cost. */
export interface CostChange {
  trace: RepricedTrace;
  cost: Cost;
}

/** Everything of a measure but the cost is the same before and after, so it need not be added up. */
const nothingElse = Object.fromEntries(
  fieldNames.filter((name) => traceFields[name].kind === 'count').map((name) => [name, null]),
) as Partial<CountedTrace>;

/** What changes in the rollups that contain these traces. Sums of costs may be negative. */
export function rollupChanges(
  changes: readonly CostChange[],
  speed: RollSpeed,
  calendar: Calendar,
): Rollup[] {
  const before = new RollupFold(speed, calendar);
  const after = new RollupFold(speed, calendar);
  for (const { trace, cost } of changes) {
    const bare = { ...trace, ...nothingElse };
    before.add(bare);
    after.add(Object.assign({ ...bare }, cost));
  }
  // Both have seen the same groups in the same order.
  const old = before.rollups();
  const differences = after.rollups().map((rollup, i): Rollup => {
    const measures = copyOf(rollup.measures);
    const part = old[i]?.measures;
    if (part) subtractMeasures(measures, part);
    return { ...rollup, measures };
  });
  return differences.filter(
    ({ measures }) => measures.cost_picos !== 0n || measures.uncosted_calls !== 0,
  );
}
