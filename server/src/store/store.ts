import type { ClockSource } from '../core/clock.ts';
import type { Auditor } from './audit.ts';
import type { PriceDirectory } from './price-directory.ts';
import type { Repricer } from './repricer.ts';
import type { Roller } from './roller.ts';
import type { SignInDirectory } from './sign-in.ts';
import type { KeyDirectory, TeamDirectory } from './teams-and-keys.ts';
import type { TraceLookups } from './trace-lookups.ts';
import type { TraceReader } from './trace-reader.ts';
import type { ClockJump, TraceWriter } from './trace-writer.ts';
import type { Transfer } from './transfer.ts';

/**
 * The interface of a driver. Routes, authentication and tools depend only on the part that they use. The tests in `test/contract/`
 * define what each method guarantees.
 */
export interface Store
  extends
    TraceWriter,
    TraceReader,
    TraceLookups,
    Roller,
    TeamDirectory,
    KeyDirectory,
    SignInDirectory,
    PriceDirectory,
    Repricer,
    Auditor,
    Transfer,
    Probe {
  /** Finishes accepted writes, then releases everything. */
  close(): Promise<void>;
}

export interface Probe {
  /** Resolves if the store can read and write; rejects with the reason if not. */
  ping(): Promise<void>;
}

export interface StoreOptions extends StoreEvents {
  clock: ClockSource;
  /** Only one server can use an embedded store. Tools can use it at the same time. */
  role: 'server' | 'tool';
  /** For commands that only read: a mistyped name must not look like an empty store. */
  mustExist?: boolean;
  /** From how many traces on a tail is rolled up at once. A performance setting: no answer depends on it. */
  rollTailRows?: number;
  /** If manual, traces are rolled up only by calls of `roll` and `rebuild`. */
  rolling?: 'automatic' | 'manual';
}

/** Events that operators should know about. */
export interface StoreEvents {
  onClockJump?: (jump: ClockJump) => void;
  /** Writes have failed for good until a restart, for this reason. Called once. */
  onBroken?: (reason: string) => void;
  /** Rollups could not be updated. No write and no answer is affected; it is tried again later. */
  onRollFailed?: (failure: RollFailure) => void;
  /** A transaction with writes has been committed. */
  onCommit?: (commit: CommitReport) => void;
  /** Tails were found, or traces were added to the rollups. Reports cost a message each, so a store sends them only if this is set. */
  onRoll?: (report: RollReport) => void;
}

export interface CommitReport {
  /** Traces that were stored. */
  rows: number;
  /** The text of all writes of the transaction. */
  bytes: number;
  tookMs: number;
}

export interface RollReport {
  /** The number of traces that the rollups do not contain, as far as this process knows. */
  tailRows: number;
  /** Null if only tails were found. */
  roll: { rows: number; tookMs: number } | null;
}

export interface RollFailure {
  teamId: string;
  reason: string;
}
