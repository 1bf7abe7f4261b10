import type { RepriceFilter, RepriceResult } from '../core/reprice.ts';
import type { CostChange, RepricedTrace } from '../core/cost-changes.ts';

/** What an operator has asked for, as it was typed. A run is continued by the same request. */
export interface RepriceRequest {
  from: string | null;
  to: string | null;
  model: string | null;
  onlyUncosted: boolean;
  includeClient: boolean;
}

/** One run of `reprice` for one team. It is kept as a record of who changed which costs. */
export interface RepriceRun {
  id: string;
  teamId: string;
  startedAtUs: number;
  /** Null if it is still running or was interrupted. */
  finishedAtUs: number | null;
  /** The user of the operating system. */
  runBy: string;
  request: RepriceRequest;
  filter: RepriceFilter;
  /** The traces up to this one are done. */
  doneSeq: number;
  /** Later traces are not part of it: they were priced when they were stored. */
  lastSeq: number;
  result: RepriceResult;
}

/** The next traces of a run that its filter selects, in order. */
export interface RepriceWindow {
  traces: readonly RepricedTrace[];
  /** No trace up to this one is missing. */
  toSeq: number;
}

/** How the traces of a transaction change, and the run after it. */
export interface RepriceDecision {
  changes: readonly CostChange[];
  run: RepriceRun;
}

/** The records of runs. */
export interface RepriceRuns {
  /** The last runs of a team, newest first. */
  repriceRuns(teamId: string): Promise<readonly RepriceRun[]>;
  addRepriceRun(run: RepriceRun): Promise<void>;
  /** Stores the run as it is. When it resolves, it is on disk. Rejects if the stored run is not at `savedSeq`. */
  saveRepriceRun(run: RepriceRun, savedSeq: number): Promise<void>;
}

/** Changes the costs of stored traces, and logs each change for the rollups. */
export interface Repricer extends RepriceRuns {
  /** As many traces after the run's `doneSeq` as one short transaction can change. */
  repriceWindow(run: RepriceRun): Promise<RepriceWindow>;
  /**
   * Reads the traces of the run up to `toSeq` again, changes those that `decide` returns, logs the
   * changes, and stores the run, all in one transaction. `decide` may be called more than once. Rejects if the stored run is not at `savedSeq`.
   */
  reprice(
    run: RepriceRun,
    savedSeq: number,
    toSeq: number,
    decide: (traces: readonly RepricedTrace[]) => RepriceDecision,
  ): Promise<RepriceDecision>;
}
