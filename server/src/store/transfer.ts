import { OperatorError } from '../errors.ts';
import type { NumberedTrace } from './audit.ts';
import type { PackedPayloads } from './payload.ts';
import type { TeamCounter } from './sequencer.ts';
import type { HashedKey, Team } from './teams-and-keys.ts';
import type { IdempotentRequest } from './trace-writer.ts';

/** A stored trace with its payloads as stored bytes, which are the same in every store. */
export interface PackedTrace extends NumberedTrace, PackedPayloads {}

/** An idempotent request that was stored, and which traces it stored. */
export interface StoredRequest extends IdempotentRequest {
  firstSeq: number;
  count: number;
  expiresAtUs: number;
}

export type Taken =
  | { kind: 'taken' }
  /** Nothing was added: the traces do not follow the team's last one, which has this sequence number. */
  | { kind: 'not-next'; lastSeq: number };

/**
 * Moves everything from one store to another, one team at a time, and keeps ids, times and sequence numbers. Data that is
 * added twice is stored once, so an interrupted transfer can continue.
 */
export interface Transfer {
  /**
   * Describes the servers that are using the store; null if there are none. In that case an embedded store also prevents servers from
   * starting until it is closed.
   */
  claim(): Promise<string | null>;

  counter(teamId: string): Promise<TeamCounter>;
  /** The next traces from `fromSeq` on, in order, as many as may be in memory at once; empty if there are no more. */
  packedTraces(teamId: string, fromSeq: number): Promise<readonly PackedTrace[]>;
  /** Requests that have not expired, ordered by key hash, starting after `after`, as many as may be in memory at once. */
  storedRequests(teamId: string, nowUs: number, after?: string): Promise<readonly StoredRequest[]>;

  /** Adds the team if there is none with its id, with this time zone or UTC. Rejects if another team has its name. */
  takeTeam(team: Team, timeZone?: string): Promise<void>;
  /** Adds traces that follow the team's last one, all or none. They are rolled up later. */
  takeTraces(teamId: string, traces: readonly PackedTrace[]): Promise<Taken>;
  takeRequests(teamId: string, requests: readonly StoredRequest[]): Promise<void>;
  /** Adds keys, and updates those that exist. */
  takeKeys(keys: readonly HashedKey[]): Promise<void>;
}

export function nameIsTaken(name: string): OperatorError {
  return new OperatorError(
    `The target already has another team named "${name}". Copy into an empty store, or into the target of an earlier copy of this source.`,
  );
}
