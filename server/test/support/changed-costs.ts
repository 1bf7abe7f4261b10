import { randomUUID } from 'node:crypto';
import type { RepricedTrace } from '../../src/core/cost-changes.ts';
import { RepriceResult } from '../../src/core/reprice.ts';
import type { RepriceDecision, RepriceRun } from '../../src/store/repricer.ts';
import type { Store } from '../../src/store/store.ts';

/** Gives every trace after one, and up to another, a new cost: in one transaction, as `reprice` does. Returns how many were changed. */
export async function changeCosts(
  store: Store,
  teamId: string,
  [fromSeq, toSeq]: readonly [number, number],
  costOf: (trace: RepricedTrace) => number | null,
): Promise<number> {
  const request = { from: null, to: null, model: null, onlyUncosted: false, includeClient: true };
  const run: RepriceRun = {
    id: randomUUID(),
    teamId,
    startedAtUs: Date.now() * 1000,
    finishedAtUs: null,
    runBy: 'test',
    request,
    filter: { fromUs: null, toUs: null, model: null, scope: 'all' },
    doneSeq: fromSeq,
    lastSeq: toSeq,
    result: new RepriceResult(1),
  };
  await store.addRepriceRun(run);
  const decide = (traces: readonly RepricedTrace[]): RepriceDecision => ({
    changes: traces.map((trace) => {
      const cost_usd = costOf(trace);
      const cost_source = cost_usd === null ? null : 'computed';
      return { trace, cost: { cost_usd, cost_source } };
    }),
    run: { ...run, doneSeq: toSeq },
  });
  return (await store.reprice(run, fromSeq, toSeq, decide)).changes.length;
}
