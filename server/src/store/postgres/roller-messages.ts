import type { Begin } from './connection.ts';
import type { Naming } from './statement-names.ts';
import type { RollBounds, RollFailure, RollReport, StoreOptions } from '../store.ts';

export interface RollerData {
  url: string;
  role: StoreOptions['role'];
  begin: Begin;
  naming: Naming;
  bounds: RollBounds;
  /** Whether anybody asked for reports. */
  isReporting: boolean;
}

export interface WrittenTeam {
  teamId: string;
  /** The last sequence number before the write, and after it. */
  fromSeq: number;
  lastSeq: number;
}

export type ToRoller = { kind: 'written'; teams: readonly WrittenTeam[] } | { kind: 'close' };

export type FromRoller =
  | { kind: 'rolled'; report: RollReport }
  | { kind: 'failed'; failure: RollFailure };
