import { Worker } from 'node:worker_threads';
import { Failure, messageOf } from '../../errors.ts';
import { moduleAt } from '../../installation.ts';
import { limits } from '../../limits.ts';
import { setYoungSpaceMin } from '../../v8.ts';
import { failAll } from '../bisection.ts';
import type { KeyUse } from '../key-table.ts';
import type { StoreEvents } from '../store.ts';
import { storedRows } from '../trace-writer.ts';
import type { TraceWrite, WriteOutcome } from '../trace-writer.ts';
import { packWrites, unpackOutcomes } from './writer-messages.ts';
import type { FromWriter, ToWriter, WriterData } from './writer-messages.ts';

export interface WriterClient {
  append(writes: readonly TraceWrite[], moreFollow?: boolean): Promise<readonly WriteOutcome[]>;
  noteKeyUse(use: KeyUse): void;
  /** Throws if the writer can no longer write. */
  ping(): void;
  close(): Promise<void>;
}

interface Waiting {
  sinceMs: number;
  writes: readonly TraceWrite[];
  settle(outcomes: readonly WriteOutcome[]): void;
}

/** The main thread's client of the writer thread. Every append is settled, even if the thread dies. */
export async function startWriter(
  data: WriterData,
  { onClockJump, onBroken, onCommit }: StoreEvents,
): Promise<WriterClient> {
  setYoungSpaceMin(writerYoungSpaceMb);
  const worker = new Worker(moduleAt('store/sqlite/writer-thread'), { workerData: data });
  const waiting = new Map<number, Waiting>();
  let nextTicket = 1;
  let endedBy: string | null = null;
  let brokenBy: string | null = null;
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();

  const noteBroken = (reason: string | null): void => {
    if (brokenBy === null && reason !== null) onBroken?.(reason);
    brokenBy = reason;
  };
  worker.on('message', (message: FromWriter) => {
    if (message.kind === 'ready') {
      ready.resolve();
      return;
    }
    const outcomes = unpackOutcomes(message.outcomes);
    const { bytes, tookMs } = message;
    const rows = onCommit ? storedRows(outcomes) : 0;
    if (rows > 0) onCommit?.({ rows, bytes, tookMs });
    let at = 0;
    for (const ticket of message.tickets) {
      const own = waiting.get(ticket);
      if (!own) throw new Error(`the writer replied to the unknown ticket ${ticket}`);
      waiting.delete(ticket);
      own.settle(outcomes.slice(at, at + own.writes.length));
      at += own.writes.length;
    }
    for (const jump of message.clockJumps) onClockJump?.(jump);
    noteBroken(message.brokenBy);
  });
  worker.on('error', (error) => {
    endedBy = messageOf(error);
    ready.reject(error);
  });
  worker.on('exit', () => {
    endedBy ??= 'the writer has stopped';
    ready.reject(new Error(endedBy));
    // It is not known whether the last commit succeeded.
    for (const { writes, settle } of waiting.values()) {
      settle(failAll(writes, { code: 'outcome_unknown', reason: endedBy }));
    }
    waiting.clear();
    ended.resolve();
  });
  await ready.promise.finally(() => setYoungSpaceMin(null));

  /** The oldest write is the first of the map. */
  const stalledBy = (): string | null => {
    const [oldest] = waiting.values();
    const ageMs = oldest === undefined ? 0 : performance.now() - oldest.sinceMs;
    return ageMs > limits.writerStallMsMax
      ? `a write has waited for ${Math.round(ageMs)} ms`
      : null;
  };

  const send = (message: ToWriter, buffers: readonly ArrayBuffer[] = []): void =>
    worker.postMessage(message, buffers);

  return {
    append(writes, moreFollow = false) {
      if (endedBy !== null) {
        return Promise.resolve(failAll(writes, { code: 'store_unavailable', reason: endedBy }));
      }
      const ticket = nextTicket++;
      const packed = packWrites(writes);
      const { promise, resolve } = Promise.withResolvers<readonly WriteOutcome[]>();
      send({ kind: 'append', ticket, writes: packed, moreFollow }, buffersIn(writes));
      waiting.set(ticket, { sinceMs: performance.now(), writes, settle: resolve });
      return promise;
    },
    noteKeyUse(use) {
      if (endedBy === null) send({ kind: 'keyUse', use });
    },
    ping() {
      const cause = endedBy ?? brokenBy ?? stalledBy();
      if (cause !== null) throw new Failure('store_unavailable', { cause });
    },
    async close() {
      if (endedBy === null) send({ kind: 'close' });
      await ended.promise;
    },
  };
}

/** What need not be copied: the main thread does not use packed payloads after this. */
function buffersIn(writes: readonly TraceWrite[]): readonly ArrayBuffer[] {
  if (writes.every(({ payloads }) => !payloads)) return none;
  return writes.flatMap(({ payloads }) => payloads?.map(({ bytes }) => bytes) ?? []);
}

const none: readonly ArrayBuffer[] = [];

/**
 * The space for new objects of a thread. V8 starts with about 1 MB and hardly grows it, since almost nothing in the writer lives long; it
 * would collect garbage every few milliseconds. With 24 instead of 8 MB, the whole service takes about 4 % less CPU time per write.
 */
const writerYoungSpaceMb = 24;
