import type { Rollup } from '../core/rollup.ts';
import type { NarrowTrace, PayloadName } from '../core/trace-fields.ts';
import type { TraceStamp } from '../core/trace.ts';
import type { TeamCounter } from './sequencer.ts';

/** A stored trace without its texts. */
export interface NumberedTrace extends NarrowTrace, TraceStamp {
  seq: number;
}

export interface AuditedTrace extends NumberedTrace {
  damaged: readonly PayloadName[];
}

/** Everything that is stored of one team, as it was at one moment. */
export interface TeamContents extends TeamCounter {
  /** In the order of their sequence numbers. Every payload was decoded. */
  traces: AsyncIterable<readonly AuditedTrace[]>;
  rollups: AsyncIterable<readonly Rollup[]>;
}

export interface Auditor {
  audit<T>(teamId: string, look: (contents: TeamContents) => Promise<T>): Promise<T>;
  /** What is broken below the level of teams, such as a damaged file; empty if nothing is. */
  checkStorage(): Promise<readonly string[]>;
}
