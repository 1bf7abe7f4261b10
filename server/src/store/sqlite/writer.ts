import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../core/clock.ts';
import type { TraceDraft } from '../../core/trace-fields.ts';
import type { TraceStamp } from '../../core/trace.ts';
import { messageOf } from '../../errors.ts';
import { storeInHalves } from '../bisection.ts';
import type { BatchResult } from '../bisection.ts';
import { countOnce, marksToFind } from '../count-once.ts';
import { answerRepeated } from '../idempotency.ts';
import { noteKeyUses } from '../key-table.ts';
import type { KeyUse } from '../key-table.ts';
import { packPayloads } from '../payload.ts';
import type { PackedPayloads } from '../payload.ts';
import { payloadsOf } from '../payload-blob.ts';
import type { ClockJump, TraceWrite, WriteOutcome } from '../trace-writer.ts';
import { rollBack, withoutWaiting } from './connection.ts';
import { openIdempotencyTable } from './idempotency-table.ts';
import type { IdempotencyTable } from './idempotency-table.ts';
import type { OpenFiles } from './open-files.ts';
import { diskFull, failureOf, isWriteError } from './sqlite-failures.ts';
import { openStatements, runSteps } from './sql.ts';
import { openTraceTables } from './trace-tables.ts';
import type { TeamRows, TraceTables } from './trace-tables.ts';

export interface Commit {
  outcomes: WriteOutcome[];
  clockJumps: ClockJump[];
  /** Why writes have stopped; null if they have not. */
  brokenBy: string | null;
}

/** The only writer of traces. It is independent of threads. */
export class Writer {
  readonly #db: DatabaseSync;
  readonly #files: OpenFiles;
  readonly #clock: Clock;
  readonly #tables: TraceTables;
  readonly #requests: IdempotencyTable;
  readonly #execute: ReturnType<typeof openStatements>;
  #brokenBy: string | null = null;
  #taken: TraceWrite[] = [];
  /** The transaction with the writes in `#taken`, or the error that ended it. */
  #open: OpenTransaction | { error: unknown } | null = null;

  constructor(db: DatabaseSync, files: OpenFiles, clock: Clock) {
    this.#db = db;
    this.#files = files;
    this.#clock = clock;
    this.#tables = openTraceTables(db);
    this.#requests = openIdempotencyTable(db);
    this.#execute = openStatements(db);
  }

  /** Adds writes to the open transaction; their rows are inserted immediately. */
  take(writes: readonly TraceWrite[]): void {
    this.#taken.push(...writes);
    this.#apply(writes);
  }

  /** Commits everything taken. If a write fails, commits the others in smaller transactions. */
  commit(keyUses: readonly KeyUse[]): Commit {
    const writes = this.#taken;
    this.#taken = [];
    const clockJumps: ClockJump[] = [];
    let isApplied = true;
    const outcomes = storeInHalves(writes, (batch) => {
      if (!isApplied) this.#apply(batch);
      const uses = isApplied ? keyUses : [];
      isApplied = false;
      return this.#commitOpen(uses, clockJumps);
    });
    return { outcomes, clockJumps, brokenBy: this.#brokenBy };
  }

  /** Records them in a separate transaction. Best effort: skipped if another process holds the lock. */
  noteKeyUses(keyUses: readonly KeyUse[]): { isNoted: boolean; brokenBy: string | null } {
    if (this.#brokenBy !== null) return { isNoted: false, brokenBy: this.#brokenBy };
    try {
      // Waiting for the lock here would delay writes that arrive in the meantime.
      withoutWaiting(this.#db, () => this.#db.exec('begin immediate'));
      runSteps(noteKeyUses(keyUses), this.#execute);
      this.#db.exec('commit');
      return { isNoted: true, brokenBy: null };
    } catch (error) {
      rollBack(this.#db);
      this.#resultOf(error);
      return { isNoted: false, brokenBy: this.#brokenBy };
    }
  }

  #apply(writes: readonly TraceWrite[]): void {
    if (this.#brokenBy !== null) return;
    try {
      this.#open ??= this.#begin();
      if ('error' in this.#open) return;
      const wallUs = this.#clock();
      for (const write of writes) this.#open.add(write, wallUs);
    } catch (error) {
      rollBack(this.#db);
      this.#open = { error };
    }
  }

  #begin(): OpenTransaction {
    // IMMEDIATE takes the write lock at the start: a transaction that starts with a read could fail later if another
    // process has written in the meantime.
    this.#db.exec('begin immediate');
    return new OpenTransaction(this.#tables, this.#requests);
  }

  #commitOpen(keyUses: readonly KeyUse[], clockJumps: ClockJump[]): BatchResult {
    if (this.#brokenBy !== null) return failed('store_unavailable', this.#brokenBy);
    try {
      const open = this.#open ?? this.#begin();
      this.#open = null;
      if ('error' in open) throw open.error;
      const jumps = open.finish();
      runSteps(noteKeyUses(keyUses), this.#execute);
      this.#db.exec('commit');
      // The commit was written to files that may not be found after a restart, so it must not be acknowledged.
      this.#brokenBy = this.#files.changedBy();
      if (this.#brokenBy !== null) return failed('outcome_unknown', this.#brokenBy);
      clockJumps.push(...jumps);
      return { kind: 'stored', outcomes: open.outcomes };
    } catch (error) {
      rollBack(this.#db);
      return this.#resultOf(error);
    }
  }

  /** After some errors the writer must stop. */
  #resultOf(error: unknown): BatchResult {
    const isOutOfRoom = isWriteError(error) && this.#files.isOutOfRoom();
    const { code, isFatal, isOfStore } = isOutOfRoom ? diskFull : failureOf(error);
    const reason = messageOf(error);
    if (isFatal) this.#brokenBy = reason;
    return { kind: 'failed', code, reason, isOfStore };
  }
}

function failed(code: 'store_unavailable' | 'outcome_unknown', reason: string): BatchResult {
  return { kind: 'failed', code, reason, isOfStore: true };
}

type Calls = NonNullable<TraceWrite['calls']>;

/** The writes of an open transaction. */
class OpenTransaction {
  readonly outcomes: WriteOutcome[] = [];
  readonly #tables: TraceTables;
  readonly #requests: IdempotencyTable;
  readonly #teams = new Map<string, TeamRows>();

  constructor(tables: TraceTables, requests: IdempotencyTable) {
    this.#tables = tables;
    this.#requests = requests;
  }

  add(write: TraceWrite, wallUs: number): void {
    const { teamNo, batch } = this.#teamOf(write.teamId);
    const { request, drafts } = write;
    const earlier = request && this.#requests.find(teamNo, request, wallUs);
    if (request && earlier) {
      this.outcomes.push(answerRepeated(request, earlier));
      return;
    }
    const firstSeq = batch.counter.lastSeq + 1;
    if (write.calls) {
      this.#addCalls(write, write.calls, wallUs);
    } else {
      this.outcomes.push({ kind: 'stored', stamps: this.#append(write, wallUs) });
    }
    if (request) this.#requests.add(teamNo, request, { firstSeq, count: drafts.length }, wallUs);
  }

  #addCalls(reported: TraceWrite, calls: Calls, wallUs: number): void {
    const { teamNo } = this.#teamOf(reported.teamId);
    const known = this.#requests.findMarks(teamNo, marksToFind(calls), wallUs);
    const { write, duplicates, marks } = countOnce(reported, calls, known);
    const stamps = this.#append(write, wallUs, duplicates);
    this.#requests.addMarks(teamNo, marks, wallUs);
    this.outcomes.push({ kind: 'stored', stamps, duplicates });
  }

  #append(
    write: TraceWrite,
    wallUs: number,
    leftOut: readonly number[] = [],
  ): readonly TraceStamp[] {
    const { batch } = this.#teamOf(write.teamId);
    const packed = payloadsOf(write, leftOut);
    const payloadsAt = packed
      ? (_: TraceDraft, i: number) => packed[i] as PackedPayloads
      : packPayloads;
    return batch.append(write, payloadsAt, wallUs);
  }

  /** Writes the counters. Returns the clock jumps that were detected. */
  finish(): ClockJump[] {
    for (const rows of this.#teams.values()) this.#tables.finish(rows);
    return [...this.#teams.values()].flatMap(({ batch }) => batch.jump ?? []);
  }

  #teamOf(teamId: string): TeamRows {
    let rows = this.#teams.get(teamId);
    if (!rows) {
      rows = this.#tables.openBatch(teamId);
      this.#teams.set(teamId, rows);
    }
    return rows;
  }
}
