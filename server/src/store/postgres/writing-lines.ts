import { limits } from '../../limits.ts';
import type { TraceWrite, WriteOutcome } from '../trace-writer.ts';
import type { CallConnection } from './call-connection.ts';

export interface Waiting {
  write: TraceWrite;
  /** The approximate memory of its drafts. */
  bytes: number;
  sinceMs: number;
  settle(outcome: WriteOutcome): void;
}

/** A connection for calls with writes of several teams. On a cluster they are all of one node; null if their nodes are not known. */
export interface CallSlot {
  readonly node: number | null;
  readonly connection: CallConnection;
  calls: number;
}

/** The writes of one team that wait, and its calls under way. */
export interface TeamLine {
  readonly teamId: string;
  readonly waiting: Waiting[];
  /** In the order in which they were sent. */
  readonly running: RunningCall[];
  /** Whether the team was locked. Then its writes do not share a call with writes of other teams. */
  isApart: boolean;
}

export interface RunningCall {
  /** Null for a call of one team. */
  slot: CallSlot | null;
  /** When the oldest of the team's writes arrived. */
  sinceMs: number;
}

/** Calls of one team follow each other on one connection, so that none waits for the lock of the one before. */
export function maySendOn(slot: CallSlot, { waiting, running, isApart }: TeamLine): boolean {
  return waiting.length > 0 && !isApart && running.every((call) => call.slot === slot);
}

/** Fails writes that have waited too long. They were not sent to the database, so they are certainly not stored. */
export function failLate({ waiting }: TeamLine): void {
  const latestMs = performance.now() - limits.postgresWaitMsMax;
  const inTime = waiting.findIndex(({ sinceMs }) => sinceMs >= latestMs);
  for (const { settle } of waiting.splice(0, inTime === -1 ? waiting.length : inTime)) {
    settle({ kind: 'failed', code: 'store_unavailable', reason: 'the write waited too long' });
  }
}

export function rowsWaiting(lines: readonly TeamLine[]): number {
  let rows = 0;
  for (const { waiting } of lines) {
    for (const { write } of waiting) rows += write.drafts.length;
  }
  return rows;
}

/** As many writes as fit into one transaction, one of each team in turn, so that a team with many writes does not delay the others. */
export function takeFairly(lines: readonly TeamLine[]): Waiting[] {
  const batch = new Batch();
  const counts = lines.map(() => 0);
  for (let left = lines.length, round = 0; left > 0 && !batch.isFull; round++) {
    left = 0;
    for (const [i, { waiting }] of lines.entries()) {
      const next = waiting[round];
      if (!next || !batch.tryAdd(next)) continue;
      counts[i] = round + 1;
      left += 1;
    }
  }
  for (const [i, { waiting }] of lines.entries()) waiting.splice(0, counts[i]);
  return batch.writes;
}

/** As many of a team's writes as fit into one transaction, and at least one. */
export function takeOfTeam({ waiting }: TeamLine): Waiting[] {
  const batch = new Batch();
  const end = waiting.findIndex((write) => !batch.tryAdd(write));
  waiting.splice(0, end === -1 ? waiting.length : end);
  return batch.writes;
}

class Batch {
  readonly writes: Waiting[] = [];
  isFull = false;
  #rows = 0;
  #bytes = 0;

  /** The first write always fits. */
  tryAdd(waiting: Waiting): boolean {
    if (this.isFull) return false;
    this.#rows += waiting.write.drafts.length;
    this.#bytes += waiting.bytes;
    const isOver = this.#rows > limits.commitRowsMax || this.#bytes > limits.commitBytesMax;
    this.isFull = isOver && this.writes.length > 0;
    if (!this.isFull) this.writes.push(waiting);
    return !this.isFull;
  }
}
