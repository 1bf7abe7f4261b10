import type { CostChange } from '../../src/core/cost-changes.ts';
import { RepriceResult } from '../../src/core/reprice.ts';
import type { RepriceRun } from '../../src/store/repricer.ts';
import type { Store } from '../../src/store/store.ts';

/** The cost of each trace before the first change; their mean afterwards. */
export const meanCost = 0.5;

export async function addSwapRun(store: Store, teamId: string, id: string): Promise<RepriceRun> {
  const run: RepriceRun = {
    id,
    teamId,
    startedAtUs: 1,
    finishedAtUs: null,
    runBy: 'test',
    request: { from: null, to: null, model: null, onlyUncosted: false, includeClient: true },
    filter: { fromUs: null, toUs: null, model: null, scope: 'all' },
    doneSeq: 0,
    lastSeq: 2 ** 40 - 1,
    result: new RepriceResult(1),
  };
  await store.addRepriceRun(run);
  return run;
}

/** Moves a part of the cost of some traces to their neighbours, in one transaction, so that the sum stays the same. */
export async function swapCosts(store: Store, run: RepriceRun, afterSeq: number): Promise<void> {
  const from = { ...run, doneSeq: afterSeq };
  await store.reprice(from, run.doneSeq, afterSeq + 10, (traces) => {
    const changes: CostChange[] = [];
    for (let i = 0; i + 1 < traces.length; i += 2) {
      const [one, other] = [traces[i], traces[i + 1]];
      if (!one || !other) break;
      const moved = (one.cost_usd ?? 0) >= 0.25 ? 0.25 : -(other.cost_usd ?? 0);
      for (const [trace, part] of [
        [one, -moved],
        [other, moved],
      ] as const) {
        const cost = { cost_usd: (trace.cost_usd ?? 0) + part, cost_source: 'computed' as const };
        changes.push({ trace, cost });
      }
    }
    return { changes, run };
  });
}
