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

/** One list for each field: with an object for each team, copying a message to the thread takes four times as long. */
export type WrittenTeams = { [Field in keyof WrittenTeam]: WrittenTeam[Field][] };

export type ToRoller = { kind: 'written'; teams: WrittenTeams } | { kind: 'close' };

export type FromRoller =
  | { kind: 'rolled'; report: RollReport }
  | { kind: 'failed'; failure: RollFailure };
