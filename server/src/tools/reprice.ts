import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { CostChange, RepricedTrace } from '../core/cost-changes.ts';
import type { Pricer } from '../core/prices/pricer.ts';
import { limits } from '../limits.ts';
import type { RepriceDecision, RepriceRequest, RepriceRun, Repricer } from '../store/repricer.ts';

import type { Roller } from '../store/roller.ts';

type Repriceable = Repricer & Pick<Roller, 'roll' | 'marks'>;

export interface RepriceOptions {
  pricer: Pricer;
  /** Nothing is changed, and the run is not stored. */
  isDryRun: boolean;
  clock: () => number;
  /** Called with the number of sequence numbers that are done, after every step. */
  onProgress?: (done: number, total: number) => void;
}

/** The run that the same request has begun and not finished. */
export async function interruptedRun(
  store: Repricer,
  teamId: string,
  request: RepriceRequest,
): Promise<RepriceRun | null> {
  const asked = JSON.stringify(request);
  const runs = await store.repriceRuns(teamId);
  const isSame = (run: RepriceRun) =>
    run.finishedAtUs === null && JSON.stringify(run.request) === asked;
  return runs.find(isSame) ?? null;
}

/**
 * Computes the costs of a run again, in short transactions with pauses of the same length, so that servers on the same store can write.
 * The run must be stored, unless it is a dry run. If it is interrupted, the stored run continues after the last transaction.
 */
export async function repriceAll(
  store: Repriceable,
  start: RepriceRun,
  { pricer, isDryRun, clock, onProgress = () => {} }: RepriceOptions,
): Promise<RepriceRun> {
  const firstSeq = start.doneSeq;
  let run = start;
  let savedSeq = start.doneSeq;
  let savedMs = performance.now();
  let changes = 0;

  async function step(): Promise<void> {
    const { traces, toSeq } = await store.repriceWindow(run);
    const decide = (found: readonly RepricedTrace[]) => decision(run, found, toSeq, pricer);
    const expected = decide(traces);
    if (isDryRun || expected.changes.length === 0) {
      run = expected.run;
      if (!isDryRun && performance.now() - savedMs > limits.repriceSaveMs) await save();
      await nextTurn();
      return;
    }
    const startMs = performance.now();
    const outcome = await store.reprice(run, savedSeq, toSeq, decide);
    noteSaved(outcome.run);
    // Until changes are rolled up, every answer has to add them up.
    changes += outcome.changes.length;
    if (changes >= limits.rollTailRows) {
      await store.roll(run.teamId, limits.rollRowsMax);
      changes = 0;
    }
    await delay(performance.now() - startMs);
  }

  async function save(): Promise<void> {
    await store.saveRepriceRun(run, savedSeq);
    noteSaved(run);
  }

  function noteSaved(saved: RepriceRun): void {
    run = saved;
    savedSeq = saved.doneSeq;
    savedMs = performance.now();
  }

  while (run.doneSeq < run.lastSeq) {
    await step();
    onProgress(run.doneSeq - firstSeq, run.lastSeq - firstSeq);
  }
  run = { ...run, finishedAtUs: clock() };
  if (!isDryRun) await save();
  return run;
}

function decision(
  run: RepriceRun,
  traces: readonly RepricedTrace[],
  toSeq: number,
  pricer: Pricer,
): RepriceDecision {
  const result = run.result.copy();
  const changes = traces
    .map((trace) => result.add(trace, pricer, run.teamId))
    .filter((change): change is CostChange => change !== null);
  return { changes, run: { ...run, doneSeq: toSeq, result } };
}
