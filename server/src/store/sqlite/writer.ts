import type { DatabaseSync } from 'node:sqlite';
import { nextCreatedAt } from '../../core/clock.ts';
import type { Clock } from '../../core/clock.ts';
import { RollupBatch } from '../../core/rollup.ts';
import type { TraceStamp } from '../../core/trace.ts';
import { uuidText, uuidV7Bytes } from '../../core/uuid.ts';
import { messageOf } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';
import { packPayloads } from '../payload.ts';
import type { ClockJump, TraceWrite, WriteOutcome } from '../store.ts';
import { openBooks } from './books.ts';
import type { TeamCounter } from './books.ts';
import { rollBack, withoutWaiting } from './connection.ts';
import { noteKeyUse } from './directory.ts';
import { openOnceLedger } from './once-ledger.ts';
import type { OpenFiles } from './open-files.ts';
import { diskFull, faultOf, isWriteError } from './sqlite-errors.ts';
import type { StoreFault } from './sqlite-errors.ts';

export interface KeyUse {
  keyId: string;
  atUs: number;
}

export interface Commit {
  outcomes: WriteOutcome[];
  clockJumps: ClockJump[];
  /** Why nothing can be written any more; null as long as all is well. */
  brokenBy: string | null;
}

/** The only place that writes traces. It knows nothing of threads. */
export interface Writer {
  /** Adds writes to the open transaction; their rows go in at once. */
  take(writes: readonly TraceWrite[]): void;
  /** Commits all that was taken. Where one write is refused, smaller transactions without it. */
  commit(keyUses: readonly KeyUse[]): Commit;
  /** Notes them in a transaction of their own. Best effort: they are not noted if another process holds the lock. */
  noteKeyUses(keyUses: readonly KeyUse[]): { isNoted: boolean; brokenBy: string | null };
}

export function openWriter(db: DatabaseSync, files: OpenFiles, clock: Clock): Writer {
  const books = openBooks(db);
  const noteUse = db.prepare(noteKeyUse);
  const requests = openOnceLedger(db);
  let brokenBy: string | null = null;
  let taken: TraceWrite[] = [];
  /** What is known of `taken` so far: what was applied, or the error that ended the transaction. */
  let open: OpenBatch | { error: unknown } | null = null;

  function take(writes: readonly TraceWrite[]): void {
    taken.push(...writes);
    if (brokenBy !== null) return;
    try {
      open ??= begin();
      if ('error' in open) return;
      open.wallUs = clock();
      for (const write of writes) apply(open, write);
    } catch (error) {
      rollBack(db);
      open = { error };
    }
  }

  function commit(keyUses: readonly KeyUse[]): Commit {
    const writes = taken;
    taken = [];
    if (brokenBy !== null) return refuseAll(writes, 'store_unavailable', brokenBy);
    try {
      const batch = open ?? begin();
      open = null;
      if ('error' in batch) throw batch.error;
      const finished = finish(batch, keyUses);
      // The commit went into files that a restart may not find, so it must not be acknowledged.
      brokenBy = files.changedBy();
      return brokenBy === null ? finished : refuseAll(writes, 'outcome_unknown', brokenBy);
    } catch (error) {
      rollBack(db);
      return retreat(writes, error);
    }
  }

  function noteKeyUses(keyUses: readonly KeyUse[]): ReturnType<Writer['noteKeyUses']> {
    if (brokenBy !== null) return { isNoted: false, brokenBy };
    try {
      // A write that comes meanwhile would wait behind this one, then for the lock itself.
      withoutWaiting(db, () => db.exec('begin immediate'));
      for (const { keyId, atUs } of keyUses) noteUse.run(keyId, atUs);
      db.exec('commit');
      return { isNoted: true, brokenBy };
    } catch (error) {
      rollBack(db);
      judge(error);
      return { isNoted: false, brokenBy };
    }
  }

  function begin(): OpenBatch {
    // IMMEDIATE takes the write lock at once: a transaction that begins by reading could fail halfway when another
    // process has written meanwhile.
    db.exec('begin immediate');
    return { wallUs: 0, ledgers: new Map(), outcomes: [] };
  }

  function apply({ wallUs, ledgers, outcomes }: OpenBatch, write: TraceWrite): void {
    let ledger = ledgers.get(write.teamId);
    if (!ledger) {
      ledger = openLedger(write.teamId);
      ledgers.set(write.teamId, ledger);
    }
    const { once } = write;
    const earlier = once ? requests.earlier(ledger.teamNo, once, wallUs) : null;
    if (earlier) {
      outcomes.push(earlier);
      return;
    }
    const place = { firstSeq: ledger.lastSeq + 1, count: write.drafts.length };
    outcomes.push({ kind: 'stored', stamps: insertAll(ledger, write, wallUs) });
    if (once) requests.note(ledger.teamNo, once, place, wallUs);
  }

  function finish({ ledgers, outcomes }: OpenBatch, keyUses: readonly KeyUse[]): Commit {
    for (const ledger of ledgers.values()) closeLedger(ledger);
    for (const { keyId, atUs } of keyUses) noteUse.run(keyId, atUs);
    db.exec('commit');
    const clockJumps = [...ledgers.values()].flatMap(({ jump }) => jump ?? []);
    return { outcomes, clockJumps, brokenBy };
  }

  /** After some errors nothing more may be written. */
  function judge(error: unknown): { fault: StoreFault; reason: string } {
    const isOutOfRoom = isWriteError(error) && files.isOutOfRoom();
    const fault = isOutOfRoom ? diskFull : faultOf(error);
    const reason = messageOf(error);
    if (fault.isFatal) brokenBy = reason;
    return { fault, reason };
  }

  /** After an error nothing of the batch is stored. What is to blame for it decides what is tried again. */
  function retreat(writes: readonly TraceWrite[], error: unknown): Commit {
    const { fault, reason } = judge(error);
    if (fault.isOfStore || writes.length <= 1) return refuseAll(writes, fault.code, reason);
    // Halves find the write that the store refuses in a few steps, so that it never fails another caller.
    const middle = writes.length >> 1;
    take(writes.slice(0, middle));
    const left = commit([]);
    take(writes.slice(middle));
    const right = commit([]);
    return {
      outcomes: [...left.outcomes, ...right.outcomes],
      clockJumps: [...left.clockJumps, ...right.clockJumps],
      brokenBy,
    };
  }

  function refuseAll(writes: readonly TraceWrite[], code: ErrorCode, reason: string): Commit {
    return {
      outcomes: writes.map(() => ({ kind: 'refused', code, reason })),
      clockJumps: [],
      brokenBy,
    };
  }

  function openLedger(teamId: string): TeamLedger {
    return { teamId, ...books.counter(teamId), rollups: new RollupBatch(), jump: null };
  }

  function insertAll(ledger: TeamLedger, write: TraceWrite, wallUs: number): TraceStamp[] {
    return write.drafts.map((draft, i) => {
      const givenUs = write.timesUs?.[i];
      // A time that is given is no clock: it may lie before live traces, and still never runs backwards.
      const createdAtUs =
        givenUs === undefined
          ? nextCreatedAt(wallUs, ledger.lastUs)
          : Math.max(givenUs, ledger.lastUs + 1);
      if (createdAtUs <= ledger.lastUs) {
        ledger.jump = { teamId: ledger.teamId, aheadUs: ledger.lastUs - wallUs };
      }
      const id = uuidV7Bytes(createdAtUs);
      ledger.lastUs = createdAtUs;
      ledger.lastSeq += 1;
      const { teamNo, lastSeq } = ledger;
      books.addTrace(teamNo, lastSeq, id, createdAtUs, draft, packPayloads(draft));
      if (ledger.rollups.isFull) writeRollups(ledger);
      ledger.rollups.add(draft, createdAtUs);
      return { id: uuidText(id), createdAtUs };
    });
  }

  function closeLedger(ledger: TeamLedger): void {
    books.moveCounter(ledger);
    writeRollups(ledger);
  }

  function writeRollups(ledger: TeamLedger): void {
    books.addRollups(ledger.teamNo, ledger.rollups);
    ledger.rollups = new RollupBatch();
  }

  return { take, commit, noteKeyUses };
}

/** A transaction that is under way. */
interface OpenBatch {
  /** When the writes came that are being applied. */
  wallUs: number;
  ledgers: Map<string, TeamLedger>;
  outcomes: WriteOutcome[];
}

/** One team's place in a transaction: where its sequence stands, and what its traces add up to. */
interface TeamLedger extends TeamCounter {
  teamId: string;
  rollups: RollupBatch;
  jump: ClockJump | null;
}
