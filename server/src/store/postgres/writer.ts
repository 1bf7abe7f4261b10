import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import { draftBytes } from '../../core/trace.ts';
import { Failure, messageOf } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { packPayloads } from '../payload.ts';
import type { ClockJump, TraceWrite, TraceWriter, WriteOutcome } from '../store.ts';
import type { Pools } from './connection.ts';
import { faultOf } from './postgres-errors.ts';
import type { PackedWrite } from './team-batch.ts';
import { attemptBatch, wasStored } from './team-transaction.ts';

export interface PostgresWriter extends TraceWriter {
  /** Throws where a write waits for too long. */
  ping(): void;
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>;
}

/**
 * Each team has a lane with one transaction under way at a time, since its counter lets no two pass anyway; what comes meanwhile
 * goes together into the next. Lanes of different teams run side by side, as many as there are connections, and take turns.
 */
export function openWriter(
  pools: Pools,
  clock: Clock,
  onClockJump: (jump: ClockJump) => void,
): PostgresWriter {
  const lanes = new Map<string, Lane>();
  /** Lanes whose writes wait for more that follows. */
  let held: Lane[] = [];
  /** Lanes that run next, in this order. */
  const ready: Lane[] = [];
  let running = 0;
  let idle: (() => void)[] = [];

  function laneOf(teamId: string): Lane {
    let lane = lanes.get(teamId);
    if (!lane) {
      lane = { teamId, waiting: [], busySinceMs: null, isQueued: false };
      lanes.set(teamId, lane);
    }
    return lane;
  }

  function wake(): void {
    for (const lane of held) queue(lane);
    held = [];
    startLanes();
  }

  function queue(lane: Lane): void {
    if (lane.isQueued || lane.busySinceMs !== null || lane.waiting.length === 0) return;
    lane.isQueued = true;
    ready.push(lane);
  }

  function startLanes(): void {
    while (running < limits.postgresWritersMax) {
      const lane = ready.shift();
      if (!lane) return;
      lane.isQueued = false;
      running += 1;
      void runOnce(lane);
    }
  }

  async function runOnce(lane: Lane): Promise<void> {
    refuseLate(lane);
    const taken = takeBatch(lane);
    lane.busySinceMs = taken[0]?.sinceMs ?? performance.now();
    const outcomes = await (taken.length === 0 ? [] : storeSafely(lane.teamId, taken));
    lane.busySinceMs = null;
    running -= 1;
    for (const [i, { settle }] of taken.entries()) settle(outcomes[i] ?? noOutcome);
    if (lane.waiting.length === 0) lanes.delete(lane.teamId);
    else queue(lane);
    startLanes();
    if (lanes.size > 0) return;
    for (const resolve of idle) resolve();
    idle = [];
  }

  /** Whatever happens, there is an outcome for each. */
  async function storeSafely(teamId: string, taken: readonly Waiting[]): Promise<WriteOutcome[]> {
    try {
      return await store(teamId, taken.map(pack));
    } catch (error) {
      return refuseAll(taken.length, 'internal', messageOf(error));
    }
  }

  async function store(teamId: string, writes: readonly PackedWrite[]): Promise<WriteOutcome[]> {
    const startMs = performance.now();
    for (let attempts = 1; ; attempts++) {
      const attempt = await attemptBatch(pools, clock, teamId, writes);
      if (attempt.kind === 'stored') return finish(attempt.batch);
      const reason = messageOf(attempt.error);
      if (attempt.kind === 'doubtful') {
        const isThere = await wasStored(pools, teamId, attempt.batch);
        if (isThere) return finish(attempt.batch);
        if (isThere === null) {
          const unknown = `${reason}; it is not known whether the commit came about`;
          return refuseAll(writes.length, 'outcome_unknown', unknown);
        }
      }
      const { code, isOfStore, isWorthRetry } = faultOf(attempt.error);
      const isInTime = performance.now() - startMs < limits.postgresRetryMsMax;
      const mayRetry = isWorthRetry || attempt.kind === 'doubtful';
      if (mayRetry && isInTime && attempts < limits.postgresAttemptsMax) {
        await delay(limits.postgresPauseMsMax * Math.random());
        continue;
      }
      if (isOfStore || writes.length === 1) return refuseAll(writes.length, code, reason);
      // Halves find the write that the store refuses in a few steps, so that it never fails another caller.
      const middle = writes.length >> 1;
      const left = await store(teamId, writes.slice(0, middle));
      return [...left, ...(await store(teamId, writes.slice(middle)))];
    }
  }

  function finish({ outcomes, jump }: Finished): WriteOutcome[] {
    if (jump) onClockJump(jump);
    return outcomes;
  }

  return {
    append(writes, moreFollow = false, tell = () => {}) {
      const { promise, resolve } = Promise.withResolvers<readonly WriteOutcome[]>();
      const outcomes: WriteOutcome[] = [];
      let left = writes.length;
      if (left === 0) resolve(outcomes);
      const sinceMs = performance.now();
      for (const [i, write] of writes.entries()) {
        const settle = (outcome: WriteOutcome): void => {
          outcomes[i] = outcome;
          // Another team's transaction may still wait for its lock: that is no reason to keep this caller.
          tell(i, outcome);
          left -= 1;
          if (left === 0) resolve(outcomes);
        };
        const lane = laneOf(write.teamId);
        lane.waiting.push({ write, sinceMs, settle });
        if (held.at(-1) !== lane) held.push(lane);
      }
      if (!moreFollow) wake();
      return promise;
    },
    ping() {
      const nowMs = performance.now();
      for (const { busySinceMs, waiting } of lanes.values()) {
        const ageMs = nowMs - (busySinceMs ?? waiting[0]?.sinceMs ?? nowMs);
        if (ageMs > limits.writerStallMsMax) {
          const cause = `a write has waited for ${Math.round(ageMs)} ms`;
          throw new Failure('store_unavailable', { cause });
        }
      }
    },
    drain() {
      if (lanes.size === 0) return Promise.resolve();
      wake();
      const { promise, resolve } = Promise.withResolvers<void>();
      idle.push(resolve);
      return promise;
    },
  };
}

interface Waiting {
  write: TraceWrite;
  sinceMs: number;
  settle(outcome: WriteOutcome): void;
}

interface Lane {
  teamId: string;
  waiting: Waiting[];
  /** Since when the oldest write of the running transaction waits; null where none runs. */
  busySinceMs: number | null;
  /** It is in the line of lanes that may run next. */
  isQueued: boolean;
}

interface Finished {
  outcomes: WriteOutcome[];
  jump: ClockJump | null;
}

/** Nothing of these was sent, so it is known that they are not stored. Their callers may have left, and would send them again. */
function refuseLate({ waiting }: Lane): void {
  const latestMs = performance.now() - limits.postgresWaitMsMax;
  const inTime = waiting.findIndex(({ sinceMs }) => sinceMs >= latestMs);
  for (const { settle } of waiting.splice(0, inTime === -1 ? waiting.length : inTime)) {
    settle({ kind: 'refused', code: 'store_unavailable', reason: 'it waited for too long' });
  }
}

/** As many of the writes as fit into one transaction, and one at least. */
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

/** Before the transaction, so that no lock is held meanwhile. */
function pack({ write }: Waiting): PackedWrite {
  return { write, payloads: write.drafts.map(packPayloads) };
}

const noOutcome: WriteOutcome = { kind: 'refused', code: 'internal', reason: 'no outcome' };

function refuseAll(count: number, code: ErrorCode, reason: string): WriteOutcome[] {
  return Array.from({ length: count }, () => ({ kind: 'refused', code, reason }));
}
