import type { Rollup } from '../core/rollup.ts';
import type { NarrowTrace, PayloadName } from '../core/trace-fields.ts';
import type { TraceStamp } from '../core/trace.ts';
import type { TeamCounter } from './sequencer.ts';

/** A stored trace without its payloads. */
export interface NumberedTrace extends NarrowTrace, TraceStamp {
  seq: number;
}

export interface AuditedTrace extends NumberedTrace {
  damaged: readonly PayloadName[];
}

/** Everything stored for one team, as a consistent snapshot. */
export interface TeamContents extends TeamCounter {
  /** In the order of their sequence numbers. Every payload is decoded. */
  traces: AsyncIterable<readonly AuditedTrace[]>;
  rollups: AsyncIterable<readonly Rollup[]>;
}

export interface Auditor {
  audit<T>(teamId: string, look: (contents: TeamContents) => Promise<T>): Promise<T>;
  /** Problems that do not belong to a team, such as a damaged file; empty if there are none. */
  checkStorage(): Promise<readonly string[]>;
}
