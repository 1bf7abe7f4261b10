import { draftBytes } from '../../core/trace.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { TraceWrite, TraceWriter, WriteOutcome } from '../trace-writer.ts';
import type { StoreBatch } from './store-batch.ts';

/**
 * Each team has a lane with one transaction at a time, since its counter row is locked; writes that arrive in the meantime share
 * the next one. Lanes of different teams run in parallel, as many as there are connections, and take turns.
 */
export class Writer implements TraceWriter {
  readonly #store: StoreBatch;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that wait because more writes follow in this turn. */
  #held: Lane[] = [];
  /** Lanes that run next, in this order. */
  readonly #ready: Lane[] = [];
  #running = 0;
  #idle: (() => void)[] = [];

  constructor(store: StoreBatch) {
    this.#store = store;
  }

  append(
    writes: readonly TraceWrite[],
    moreFollow = false,
    tell: (at: number, outcome: WriteOutcome) => void = () => {},
  ): Promise<readonly WriteOutcome[]> {
    const { promise, resolve } = Promise.withResolvers<readonly WriteOutcome[]>();
    const outcomes: WriteOutcome[] = [];
    let left = writes.length;
    if (left === 0) resolve(outcomes);
    const sinceMs = performance.now();
    for (const [i, write] of writes.entries()) {
      const settle = (outcome: WriteOutcome): void => {
        outcomes[i] = outcome;
        // This caller need not wait for another team's transaction.
        tell(i, outcome);
        left -= 1;
        if (left === 0) resolve(outcomes);
      };
      const lane = this.#laneOf(write.teamId);
      lane.waiting.push({ write, sinceMs, settle });
      if (this.#held.at(-1) !== lane) this.#held.push(lane);
    }
    if (!moreFollow) this.#wake();
    return promise;
  }

  /** Throws if a write has waited too long. */
  ping(): void {
    const nowMs = performance.now();
    for (const { busySinceMs, waiting } of this.#lanes.values()) {
      const ageMs = nowMs - (busySinceMs ?? waiting[0]?.sinceMs ?? nowMs);
      if (ageMs > limits.writerStallMsMax) {
        const cause = `a write has waited for ${Math.round(ageMs)} ms`;
        throw new Failure('store_unavailable', { cause });
      }
    }
  }

  /** Resolves when no write is waiting. */
  drain(): Promise<void> {
    if (this.#lanes.size === 0) return Promise.resolve();
    this.#wake();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.push(resolve);
    return promise;
  }

  #laneOf(teamId: string): Lane {
    let lane = this.#lanes.get(teamId);
    if (!lane) {
      lane = { teamId, waiting: [], busySinceMs: null, isQueued: false };
      this.#lanes.set(teamId, lane);
    }
    return lane;
  }

  #wake(): void {
    for (const lane of this.#held) this.#queue(lane);
    this.#held = [];
    this.#startLanes();
  }

  #queue(lane: Lane): void {
    if (lane.isQueued || lane.busySinceMs !== null || lane.waiting.length === 0) return;
    lane.isQueued = true;
    this.#ready.push(lane);
  }

  #startLanes(): void {
    while (this.#running < limits.postgresWritersMax) {
      const lane = this.#ready.shift();
      if (!lane) return;
      lane.isQueued = false;
      this.#running += 1;
      void this.#runOnce(lane);
    }
  }

  async #runOnce(lane: Lane): Promise<void> {
    failLate(lane);
    const taken = takeBatch(lane);
    lane.busySinceMs = taken[0]?.sinceMs ?? performance.now();
    const writes = taken.map(({ write }) => write);
    const outcomes = await (taken.length === 0 ? [] : this.#store(lane.teamId, writes));
    lane.busySinceMs = null;
    this.#running -= 1;
    for (const [i, { settle }] of taken.entries()) settle(outcomes[i] ?? noOutcome);
    if (lane.waiting.length === 0) this.#lanes.delete(lane.teamId);
    else this.#queue(lane);
    this.#startLanes();
    if (this.#lanes.size > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle = [];
  }
}

interface Waiting {
  write: TraceWrite;
  sinceMs: number;
  settle(outcome: WriteOutcome): void;
}

interface Lane {
  teamId: string;
  waiting: Waiting[];
  /** When the oldest write of the running transaction arrived; null if none is running. */
  busySinceMs: number | null;
  /** Whether it is in the queue of lanes that run next. */
  isQueued: boolean;
}

/** Fails writes that have waited too long. They were not sent to the database, so they are certainly not stored. */
function failLate({ waiting }: Lane): void {
  const latestMs = performance.now() - limits.postgresWaitMsMax;
  const inTime = waiting.findIndex(({ sinceMs }) => sinceMs >= latestMs);
  for (const { settle } of waiting.splice(0, inTime === -1 ? waiting.length : inTime)) {
    settle({ kind: 'failed', code: 'store_unavailable', reason: 'the write waited too long' });
  }
}

/** As many of the writes as fit into one transaction, and at least one. */
function takeBatch(lane: Lane): Waiting[] {
  let rows = 0;
  let bytes = 0;
  const isFull = lane.waiting.findIndex(({ write }, i) => {
    rows += write.drafts.length;
    for (const draft of write.drafts) bytes += draftBytes(draft);
    return i > 0 && (rows > limits.commitRowsMax || bytes > limits.commitBytesMax);
  });
  return lane.waiting.splice(0, isFull === -1 ? lane.waiting.length : isFull);
}

const noOutcome: WriteOutcome = { kind: 'failed', code: 'internal', reason: 'no outcome' };
