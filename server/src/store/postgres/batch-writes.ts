import { countOnce } from '../count-once.ts';
import { answerRepeated } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import type { PackedPayloads } from '../payload.ts';
import type { TeamCounter } from '../sequencer.ts';
import { TeamBatch } from '../team-batch.ts';
import type { AddRow } from '../team-batch.ts';
import type { ClockJump, IdempotentRequest, TraceWrite, WriteOutcome } from '../trace-writer.ts';
import type { BatchRows } from './batch-rows.ts';

/** A write with the packed payloads of each draft. */
export interface PackedWrite {
  write: TraceWrite;
  payloads: readonly PackedPayloads[];
}

/** What was found when the transaction began, by team. */
export interface LockedTeam {
  counter: TeamCounter;
  /** Changes if a transaction that was sent, but not executed, must not be executed any more. */
  fence: number;
  /** By key hash, or by the mark of a call. */
  earlier: Map<string, EarlierRequest>;
}

/** An idempotent request that is stored with its traces. */
export interface NewRequest {
  teamId: string;
  request: IdempotentRequest;
  firstSeq: number;
  count: number;
}

/** A counter after a transaction. */
export interface MovedCounter extends TeamCounter {
  teamId: string;
  fence: number;
  /** The last sequence number and time before the transaction. */
  fromSeq: number;
  fromUs: number;
}

/** What one transaction writes, for one team or for many, computed in memory. */
export class BatchWrites {
  readonly outcomes: WriteOutcome[] = [];
  readonly rows: BatchRows;
  readonly requests: NewRequest[] = [];
  /** The writes of teams that another transaction has locked. They have an outcome, but not the final one. */
  readonly locked = new Set<PackedWrite>();
  readonly #teams: ReadonlyMap<string, LockedTeam>;
  readonly #batches = new Map<string, { team: LockedTeam; batch: TeamBatch }>();
  /** By team and mark. */
  readonly #marks = new Map<string, NewRequest>();
  readonly #wallUs: number;

  constructor(teams: ReadonlyMap<string, LockedTeam>, wallUs: number, rows: BatchRows) {
    this.rows = rows;
    this.#teams = teams;
    this.#wallUs = wallUs;
  }

  get jumps(): readonly ClockJump[] {
    return [...this.#batches.values()].flatMap(({ batch }) => batch.jump ?? []);
  }

  /** The counters of teams that have new traces. A replayed request moves none, so it leaves no gap. */
  counters(): MovedCounter[] {
    return [...this.#batches].map(([teamId, { team, batch }]) => ({
      teamId,
      fence: team.fence,
      fromSeq: team.counter.lastSeq,
      fromUs: team.counter.lastUs,
      ...batch.counter,
    }));
  }

  add(packed: PackedWrite): void {
    const { write, payloads } = packed;
    const { teamId, request, drafts } = write;
    const team = this.#teams.get(teamId);
    if (!team) {
      this.locked.add(packed);
      this.outcomes.push(isLocked);
      return;
    }
    const earlier = request && team.earlier.get(request.keyHash);
    if (request && earlier) {
      this.outcomes.push(answerRepeated(request, earlier));
      return;
    }
    if (write.calls) {
      this.#addCalls(packed, write.calls, team);
      return;
    }
    const batch = this.#batchOf(teamId, team);
    const range = { firstSeq: batch.counter.lastSeq + 1, count: drafts.length };
    const packedAt = (index: number) => payloads[index] as PackedPayloads;
    const stamps = batch.append(write, (_draft, index) => packedAt(index), this.#wallUs);
    this.outcomes.push({ kind: 'stored', stamps });
    if (!request) return;
    this.requests.push({ teamId, request, ...range });
    // The same request may be repeated in the same batch.
    const { keyHash, bodyHash, rejected } = request;
    team.earlier.set(keyHash, { bodyHash, ...range, rejected });
  }

  #addCalls({ write: reported, payloads }: PackedWrite, calls: Calls, team: LockedTeam): void {
    const { teamId } = reported;
    const { earlier } = team;
    const { write, duplicates, marks } = countOnce(reported, calls, {
      get: (mark) => earlier.get(mark)?.bodyHash,
      set: (mark, state) => void earlier.set(mark, { ...requestOfMark(state), ...noRange }),
    });
    for (const [mark, state] of marks) this.#addMark(teamId, mark, state);
    if (write.drafts.length === 0) {
      this.outcomes.push({ kind: 'stored', stamps: [], duplicates });
      return;
    }
    const isLeftOut = new Set(duplicates);
    const left = payloads.filter((_, i) => !isLeftOut.has(i));
    const packedAt = (index: number) => left[index] as PackedPayloads;
    const batch = this.#batchOf(teamId, team);
    const stamps = batch.append(write, (_draft, index) => packedAt(index), this.#wallUs);
    this.outcomes.push({ kind: 'stored', stamps, duplicates });
  }

  /** Another write of the batch may have added the same mark. */
  #addMark(teamId: string, mark: string, state: string): void {
    const name = `${teamId} ${mark}`;
    const request = { ...requestOfMark(state), keyHash: mark };
    const added = this.#marks.get(name);
    if (added) {
      added.request = request;
      return;
    }
    const row: NewRequest = { teamId, request, ...noRange };
    this.#marks.set(name, row);
    this.requests.push(row);
  }

  #batchOf(teamId: string, team: LockedTeam): TeamBatch {
    const found = this.#batches.get(teamId);
    if (found) return found.batch;
    const { rows } = this;
    const addRow: AddRow = (assigned, trace, payloads) =>
      rows.add(teamId, assigned, trace, payloads);
    const batch = new TeamBatch(teamId, team.counter, addRow);
    this.#batches.set(teamId, { team, batch });
    return batch;
  }
}

type Calls = NonNullable<TraceWrite['calls']>;

/** The mark of a call is stored like a request, with its state in place of the hash of the body. */
const requestOfMark = (state: string) => ({ bodyHash: state, rejected: null });
const noRange = { firstSeq: 0, count: 0 };

const isLocked: WriteOutcome = {
  kind: 'failed',
  code: 'store_unavailable',
  reason: 'another transaction has locked the team',
};
