import type { Begin } from './connection.ts';
import type { Naming } from './statement-names.ts';
import type { RollFailure, RollReport, StoreOptions } from '../store.ts';

export interface RollerData {
  url: string;
  role: StoreOptions['role'];
  begin: Begin;
  naming: Naming;
  /** A tail of so many traces is rolled up at once. */
  rowsMin: number;
  /** Whether anybody asked for reports. */
  isReporting: boolean;
}

export interface WrittenTeam {
  teamId: string;
  /** The last sequence number before the write, and after it. */
  fromSeq: number;
  lastSeq: number;
}

/** One list for each field: with an object for each team, copying a message to the thread takes four times as long. */
export type WrittenTeams = { [Field in keyof WrittenTeam]: WrittenTeam[Field][] };

export type ToRoller = { kind: 'written'; teams: WrittenTeams } | { kind: 'close' };

export type FromRoller =
  | { kind: 'rolled'; report: RollReport }
  | { kind: 'failed'; failure: RollFailure };
