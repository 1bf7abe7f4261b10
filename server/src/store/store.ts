import type { ClockSource } from '../core/clock.ts';
import type { Auditor } from './audit.ts';
import type { SignInDirectory } from './sign-in.ts';
import type { KeyDirectory, TeamDirectory } from './teams-and-keys.ts';
import type { TraceReader } from './trace-reader.ts';
import type { ClockJump, TraceWriter } from './trace-writer.ts';
import type { Transfer } from './transfer.ts';

/**
 * What a driver implements. Routes, authentication and tools ask for the part that they use. `test/contract/` says in tests what each
 * promise means.
 */
export interface Store
  extends
    TraceWriter,
    TraceReader,
    TeamDirectory,
    KeyDirectory,
    SignInDirectory,
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
  /** A server holds an embedded store alone. A tool works beside it. */
  role: 'server' | 'tool';
  /** For commands that only look: a mistyped name must not read as an empty store. */
  mustExist?: boolean;
}

/** What operators should know of. */
export interface StoreEvents {
  onClockJump?: (jump: ClockJump) => void;
  /** Nothing can be written until a restart, for this reason. Called once. */
  onBroken?: (reason: string) => void;
}
