import { OperatorError } from '../errors.ts';
import type { AuditTrace, KeyRecord, Once, Team } from './store.ts';
import type { PackedPayloads } from './payload.ts';

/** A trace as it lies in a store, its payloads still packed: all stores pack alike. */
export interface PackedTrace extends AuditTrace, PackedPayloads {}

/** A key with all that is known of it. */
export interface MovedKey extends Omit<KeyRecord, 'teamName'> {
  hash: string;
}

/** A request that may be stored only once, and where its traces are. */
export interface MovedRequest extends Once {
  firstSeq: number;
  count: number;
  expiresAtUs: number;
}

/** Where a team's sequence begins and ends. A team without traces ends before it begins. */
export interface TeamPlace {
  firstSeq: number;
  lastSeq: number;
}

export type Taken =
  | { kind: 'taken' }
  /** Nothing was added: the traces do not follow the team's last one, which has this number. */
  | { kind: 'elsewhere'; lastSeq: number };

/**
 * Moves everything from one store to another, a team at a time, with ids, times and numbers kept. What is taken twice is there once, so a
 * move that was interrupted begins again where it ended.
 */
export interface Mover {
  /**
   * Tells what server is at work on the store and may write to it, in words; null where none is. An embedded store then also keeps
   * servers away until it is closed.
   */
  claim(): Promise<string | null>;

  place(teamId: string): Promise<TeamPlace>;
  /** As many as may be in memory at once, from a number on, in their order; none where there are no more. */
  packedTraces(teamId: string, fromSeq: number): Promise<readonly PackedTrace[]>;
  /** Those that have not expired, by the hash of their key and after one, as many as may be in memory at once. */
  knownRequests(teamId: string, nowUs: number, after?: string): Promise<readonly MovedRequest[]>;
  keysWithHashes(): Promise<readonly MovedKey[]>;

  /** Adds the team where there is none of its id. Rejects where its name is another team's. */
  takeTeam(team: Team): Promise<void>;
  /** Adds traces that follow the team's last one and counts them, all or none. */
  takeTraces(teamId: string, traces: readonly PackedTrace[]): Promise<Taken>;
  takeRequests(teamId: string, requests: readonly MovedRequest[]): Promise<void>;
  /** Adds keys, and brings those that are there up to date. */
  takeKeys(keys: readonly MovedKey[]): Promise<void>;
}

export function nameIsTaken(name: string): OperatorError {
  return new OperatorError(
    `The target has another team "${name}" already. Copy into an empty store, or into one that a copy has begun.`,
  );
}
