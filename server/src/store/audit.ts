import type { Group } from '../core/rollup.ts';
import type { NarrowTrace, PayloadName } from '../core/trace-fields.ts';
import type { TraceStamp } from '../core/trace.ts';
import type { RollupRow } from './rollup-rows.ts';
import type { TeamCounter } from './sequencer.ts';
import type { TeamMarks } from './team-marks.ts';

/** A stored trace without its payloads. */
export interface NumberedTrace extends NarrowTrace, TraceStamp {
  seq: number;
}

export interface AuditedTrace extends NumberedTrace {
  /** Null if it is damaged. */
  metadata: string | null;
  damaged: readonly PayloadName[];
}

/** Everything stored for one team, as a consistent snapshot. */
export interface TeamContents extends TeamCounter {
  /** In the order of their sequence numbers. Every payload is decoded. */
  traces: AsyncIterable<readonly AuditedTrace[]>;
  marks: TeamMarks;
  /** Every rollup of the active generation. */
  rollups: AsyncIterable<readonly AuditedRollup[]>;
  /** Ordered by sequence number; null if the store has indexes instead. */
  lookups: AsyncIterable<readonly StoredLookup[]> | null;
}

/** A rollup as it is stored: its sums may be damaged. The group is null if its values are missing. */
export interface AuditedRollup extends RollupRow {
  group: Group | null;
}

/** Says that a trace has a value with this hash (`lookupHash`). */
export interface StoredLookup {
  seq: number;
  hash: number;
}

export interface Auditor {
  audit<T>(teamId: string, look: (contents: TeamContents) => Promise<T>): Promise<T>;
  /** Problems that do not belong to a team, such as a damaged file; empty if there are none. */
  checkStorage(): Promise<readonly string[]>;
}
