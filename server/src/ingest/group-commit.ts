import { FairShare } from '../core/fair-share.ts';
import { draftBytes } from '../core/trace.ts';
import type { Trace, TraceDraft } from '../core/trace.ts';
import { Failure } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Once, Replay, TraceWrite, TraceWriter, WriteOutcome } from '../store/store.ts';

/**
 * Many callers, few transactions. What arrives goes to the store in small chunks, at the latest with the turn of the event loop;
 * the store commits together all that waits for it. Nothing here holds a write back, and every promise is settled.
 */
export interface GroupCommit {
  /** Resolves when the traces are on disk, readable and counted. Rejects with a `Failure`. */
  append(teamId: string, drafts: readonly TraceDraft[], once?: Once | null): Promise<Appended>;
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>;
}

/** The stored traces; or where those of an earlier request with the same key are. */
export type Appended = { kind: 'recorded'; traces: Trace[] } | ({ kind: 'replayed' } & Replay);

export interface QueueBounds {
  queueRowsMax: number;
  queueBytesMax: number;
}

interface Caller {
  write: TraceWrite;
  bytes: number;
  isSettled: boolean;
  resolve(appended: Appended): void;
  reject(error: Failure): void;
}

export function openGroupCommit(writer: TraceWriter, bounds: QueueBounds = limits): GroupCommit {
  let gathering: Caller[] = [];
  let isTurnOpen = false;
  let gatheringRows = 0;
  let rowsOfTurn = 0;
  // What may wait is shared between the teams: the backlog of one must not refuse the writes of another.
  const waitingRows = new FairShare(bounds.queueRowsMax);
  const waitingBytes = new FairShare(bounds.queueBytesMax);
  let idle: (() => void)[] = [];

  function admit(caller: Caller): void {
    // The writer starts on the first few while the others are still being parsed: else the two threads work in turns.
    if (gatheringRows >= limits.chunkRowsMax) {
      rowsOfTurn += gatheringRows;
      send(rowsOfTurn < limits.turnRowsMax);
    }
    gathering.push(caller);
    gatheringRows += caller.write.drafts.length;
    if (isTurnOpen) return;
    isTurnOpen = true;
    setImmediate(endTurn);
  }

  /** There is always something left to send, since a chunk goes only when the next write is here. */
  function endTurn(): void {
    isTurnOpen = false;
    send(false);
  }

  function send(moreFollow: boolean): void {
    const callers = gathering;
    gathering = [];
    gatheringRows = 0;
    if (!moreFollow) rowsOfTurn = 0;
    writer
      .append(
        callers.map(({ write }) => write),
        moreFollow,
        (at, outcome) => {
          const caller = callers[at];
          if (caller) settle(caller, outcome);
        },
      )
      .then(
        (outcomes) => {
          for (const [i, caller] of callers.entries()) settle(caller, outcomes[i]);
        },
        (cause: unknown) => {
          for (const caller of callers)
            settle(caller, { kind: 'refused', code: 'internal', reason: String(cause) });
        },
      );
  }

  function settle(caller: Caller, outcome: WriteOutcome | undefined): void {
    if (caller.isSettled) return;
    caller.isSettled = true;
    giveBack(caller.write.teamId, caller.write.drafts.length, caller.bytes);
    if (outcome?.kind === 'stored') {
      caller.resolve({ kind: 'recorded', traces: stampAll(caller.write, outcome.stamps) });
    } else if (outcome?.kind === 'replayed') {
      caller.resolve(outcome);
    } else {
      const { code, reason } = outcome ?? { code: 'internal' as const, reason: 'no outcome' };
      caller.reject(new Failure(code, { cause: reason }));
    }
    if (waitingRows.used === 0) {
      for (const resolve of idle) resolve();
      idle = [];
    }
  }

  function tryTake(teamId: string, rows: number, bytes: number): boolean {
    const holder = { teamId, keyId: null };
    if (!waitingRows.tryTake(holder, rows)) return false;
    if (waitingBytes.tryTake(holder, bytes)) return true;
    waitingRows.give(holder, rows);
    return false;
  }

  function giveBack(teamId: string, rows: number, bytes: number): void {
    const holder = { teamId, keyId: null };
    waitingRows.give(holder, rows);
    waitingBytes.give(holder, bytes);
  }

  return {
    append(teamId, drafts, once = null) {
      const bytes = drafts.reduce((sum, draft) => sum + draftBytes(draft), 0);
      if (!tryTake(teamId, drafts.length, bytes)) return Promise.reject(new Failure('queue_full'));
      const { promise, resolve, reject } = Promise.withResolvers<Appended>();
      const write = { teamId, drafts, ...(once && { once }) };
      admit({ write, bytes, isSettled: false, resolve, reject });
      return promise;
    },
    drain() {
      if (waitingRows.used === 0) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      idle.push(resolve);
      return promise;
    },
  };
}

function stampAll(
  { teamId, drafts }: TraceWrite,
  stamps: Extract<WriteOutcome, { kind: 'stored' }>['stamps'],
): Trace[] {
  return stamps.map((stamp, i) => ({ ...(drafts[i] as TraceDraft), ...stamp, teamId }));
}
