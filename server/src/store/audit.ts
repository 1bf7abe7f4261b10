import { latencyBinOf } from '../core/measures.ts';
import type { CountedTrace, Group, RollupId } from '../core/rollup.ts';
import { costOf } from '../core/trace-cost.ts';
import type { NarrowTrace, PayloadName } from '../core/trace-fields.ts';
import type { TraceStamp } from '../core/trace.ts';
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
  /** The form in which its cost and latency are added up does not match them. */
  hasWrongSums?: boolean;
}

/**
 * Adds whether the columns that are added up match the others. A trace with a change that is not in the rollups yet gets its values from before
 * the change, which are those that the rollups contain.
 */
export function withStoredSums(
  trace: AuditedTrace,
  row: Readonly<Record<string, unknown>>,
  pending: ReadonlyMap<number, CountedTrace>,
): AuditedTrace {
  const cost = costOf(trace);
  const isRight =
    numberOf(row['cost_micros']) === (cost?.micros ?? null) &&
    numberOf(row['cost_picos']) === (cost?.picos ?? null) &&
    numberOf(row['latency_bin']) === latencyBinOf(trace);
  return { ...trace, ...pending.get(trace.seq), ...(isRight ? {} : { hasWrongSums: true }) };
}

/** PostgreSQL returns large integers as text. */
function numberOf(value: unknown): number | null {
  return value === null ? null : Number(value);
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

/** What a rollup adds up. */
export interface RollupSums {
  /** In the order of `addedColumns`. */
  sums: readonly (number | bigint)[];
  latencies: Uint8Array;
}

/** A rollup as it is stored: its histogram may be damaged. The group is null if its values are missing. */
export interface AuditedRollup extends Omit<RollupId, 'group'>, RollupSums {
  hash: Uint8Array;
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
