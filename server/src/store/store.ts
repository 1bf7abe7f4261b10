import type { DayTally, NamedTally } from '../core/analytics.ts';
import type { Scope } from '../core/api-key.ts';
import type { ClockSource } from '../core/clock.ts';
import type { CountedTrace, RollupKey, Tally } from '../core/rollup.ts';
import type { PayloadName, Trace, TraceDraft, TraceStamp } from '../core/trace.ts';
import type { ErrorCode } from '../errors.ts';
import type { Mover } from './mover.ts';

/** What every store can do. `test/contract/` says in tests what each promise means. */
export interface Store
  extends TraceWriter, TraceReader, KeyDirectory, SessionDirectory, Auditor, Mover {
  /** Resolves when the store can read and write; rejects with the reason where it cannot. */
  ping(): Promise<void>;
  /** Finishes what was taken, then lets go of everything. */
  close(): Promise<void>;
}

export interface StoreOptions extends StoreEvents {
  clock: ClockSource;
  /** A server holds an embedded store alone. A tool works beside it. */
  role: 'server' | 'tool';
  /** A store that only is looked at must be there: a mistyped name must not read as an empty one. */
  mustExist?: boolean;
}

/** What operators should know of. */
export interface StoreEvents {
  onClockJump?: (jump: ClockJump) => void;
  /** Nothing can be written any more until a restart, for this reason. Called once. */
  onBroken?: (reason: string) => void;
}

/** A team's last trace lay far ahead of the clock, so that its time had to step back. */
export interface ClockJump {
  teamId: string;
  aheadUs: number;
}

// --- Writing traces ---

/** Traces of one caller. They are stored together, in order, or not at all. */
export interface TraceWrite {
  teamId: string;
  drafts: readonly TraceDraft[];
  /** Where the request may be stored only once. */
  once?: Once;
  /** Times in place of the clock's, one a draft, ascending: for demo data. No route sets them. */
  timesUs?: readonly number[];
}

/** A request by its Idempotency-Key: a second one with the same key and body stores nothing. */
export interface Once {
  keyHash: string;
  bodyHash: string;
  /** What of the request was rejected, as the reply told it; for the same reply again. */
  rejected: string | null;
}

/** Where the traces of an earlier request are, and what its reply said besides. */
export interface Replay {
  firstSeq: number;
  count: number;
  rejected: string | null;
}

export type WriteOutcome =
  | { kind: 'stored'; stamps: readonly TraceStamp[] }
  | ({ kind: 'replayed' } & Replay)
  | { kind: 'refused'; code: ErrorCode; reason: string };

export interface TraceWriter {
  /**
   * Stores each write in whole or not at all, and answers one outcome for each, in order. When it resolves,
   * everything stored is on disk, readable and counted. Of two writes of the same `once` only the first is stored,
   * also within one call and across restarts; the other is told where the first one's traces are. The writes may share a transaction with others; one
   * that is refused never takes another with it. Where more follow at once, the store may wait for them with
   * the commit; the last call must say that none do. A store that knows one outcome before the others may tell it ahead.
   */
  append(
    writes: readonly TraceWrite[],
    moreFollow?: boolean,
    tell?: (at: number, outcome: WriteOutcome) => void,
  ): Promise<readonly WriteOutcome[]>;
}

// --- Reading traces and sums ---

export interface PageRequest {
  page: number;
  limit: number;
  omit: ReadonlySet<PayloadName>;
}

export interface TracePage {
  total: number;
  /** The page's traces, newest first: all of them, or as many as fit into one chunk. */
  first: readonly Trace[];
  /** The others in chunks of bounded size, since a page may hold half a gigabyte; null where `first` is the whole page. */
  rest: AsyncIterable<readonly Trace[]> | null;
}

export type GroupDimension = 'model' | 'feature';

export interface GroupList {
  first: readonly NamedTally[];
  /** The others in chunks, all as they were at one moment; null if `first` is the whole list. It must be closed. */
  rest: (AsyncIterable<readonly NamedTally[]> & { close(): void }) | null;
}

export interface TraceReader {
  /** Reads that wait are not begun if they are no longer wanted. */
  page(teamId: string, request: PageRequest, isWanted?: () => boolean): Promise<TracePage>;
  trace(teamId: string, id: string, isWanted?: () => boolean): Promise<Trace | null>;
  /** Traces that follow each other, in the order of their sequence. */
  range(teamId: string, place: { firstSeq: number; count: number }): Promise<readonly Trace[]>;
  total(teamId: string): Promise<Tally>;
  /** By calls descending, then by name: all of them, or the first `rowsMax`. */
  groups(teamId: string, dimension: GroupDimension, rowsMax: number | null): Promise<GroupList>;
  /** The days of the range that have calls. */
  days(teamId: string, range: { firstDay: number; lastDay: number }): Promise<readonly DayTally[]>;
}

// --- Teams and keys ---

export interface Team {
  id: string;
  name: string;
  createdAtUs: number;
}

export interface TeamSummary extends Team {
  traces: number;
  liveKeys: number;
}

export interface NewKey {
  id: string;
  hash: string;
  prefix: string;
  name: string | null;
  scope: Scope;
  createdAtUs: number;
  expiresAtUs: number | null;
}

export interface KeyRecord extends Omit<NewKey, 'hash'> {
  teamId: string;
  teamName: string;
  revokedAtUs: number | null;
  /** The id of the key that a rotation put in this one's place. */
  replacedBy: string | null;
  lastUsedAtUs: number | null;
}

export interface KeyDirectory {
  /** The team of this name, made where there is none. */
  ensureTeam(name: string, nowUs: number): Promise<{ team: Team; created: boolean }>;
  findTeam(nameOrId: string): Promise<Team | null>;
  teams(nowUs: number): Promise<readonly TeamSummary[]>;
  createKey(teamId: string, key: NewKey): Promise<void>;
  /** Adds the new key and lets the old one end at `oldExpiresAtUs`, both or neither. False where the old one is gone or replaced. */
  rotateKey(oldKeyId: string, key: NewKey, oldExpiresAtUs: number): Promise<boolean>;
  /** False where there is no such key, or it was revoked before. */
  revokeKey(keyId: string, nowUs: number): Promise<boolean>;
  findKey(keyId: string): Promise<KeyRecord | null>;
  findKeyByHash(hash: string): Promise<KeyRecord | null>;
  keys(teamId: string | null): Promise<readonly KeyRecord[]>;
  /** Notes a use, some time soon. It is not worth a promise. */
  noteKeyUse(keyId: string, atUs: number): void;
}

// --- Sign-in sessions ---

export interface NewSignInCode {
  /** The code itself is never stored. */
  hash: string;
  keyId: string;
  expiresAtUs: number;
}

/** An API key with its hash, which every session that it started is bound to. */
export interface SessionKey extends KeyRecord {
  hash: string;
}

export interface SessionDirectory {
  /** 32 random bytes that sign session cookies: created on first use, then the same for every process on this store. */
  sessionSecret(): Promise<Uint8Array>;
  findSessionKey(keyId: string): Promise<SessionKey | null>;
  /** Also removes codes that have expired. */
  addSignInCode(code: NewSignInCode, nowUs: number): Promise<void>;
  /** The id of the code's API key, or null if the code is unknown, used or expired. The code stays valid. */
  findSignInCode(hash: string, nowUs: number): Promise<string | null>;
  /** The same, but uses the code up: of several callers at once, only one gets the id. */
  takeSignInCode(hash: string, nowUs: number): Promise<string | null>;
}

// --- Checking the books ---

export interface AuditTrace extends CountedTrace {
  seq: number;
  id: string;
  createdAtUs: number;
}

export interface AuditedTrace extends AuditTrace {
  damaged: readonly PayloadName[];
}

export interface TeamBooks {
  firstSeq: number;
  lastSeq: number;
  lastCreatedAtUs: number;
  /** In the order of their sequence. Every payload was decoded. */
  traces: AsyncIterable<readonly AuditedTrace[]>;
  rollups: AsyncIterable<readonly (RollupKey & Tally)[]>;
}

export interface Auditor {
  /** Shows one team's traces and sums as they were at one moment. */
  audit<T>(teamId: string, look: (books: TeamBooks) => Promise<T>): Promise<T>;
  /** What is broken below the level of teams, such as a damaged file; empty where nothing is. */
  checkStorage(): Promise<readonly string[]>;
}
