import type { TraceDraft } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';
import { Failure } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { limits } from '../limits.ts';
import { writeBytes } from '../store/trace-writer.ts';
import type {
  IdempotentRequest,
  Replay,
  TraceWrite,
  TraceWriter,
  WriteOutcome,
} from '../store/trace-writer.ts';
import { StoreRoom, isSmallWork, smallWorkMax, workOf } from './store-room.ts';
import { TeamLines } from './team-lines.ts';
import { WaitingBudget } from './waiting-budget.ts';

/** The stored traces, or those that an earlier request with the same idempotency key stored. */
export type Appended = Recorded | ({ kind: 'replayed' } & Replay);

interface Recorded {
  kind: 'recorded';
  traces: Trace[];
  /** Drafts that were left out, since their calls were stored before. */
  duplicates: number;
}

interface Caller {
  write: TraceWrite;
  /** What it holds of the budget itself; none if it is part of a request with a reservation. */
  rows: number;
  bytes: number;
  work: number;
  /** When it went to the store. */
  startedMs: number;
  isSettled: boolean;
  resolve(appended: Appended): void;
  reject(error: Failure): void;
}

/** Counts how writes end. */
export interface WriteWatch {
  noteStored(teamId: string, traces: readonly Trace[]): void;
  noteFailedWrite(code: ErrorCode): void;
}

/** What a decoding thread has made of a write, and the reservation that it is part of. */
export interface AppendOptions {
  payloads?: TraceWrite['payloads'];
  calls?: TraceWrite['calls'];
  /** Of the request, for all its writes. */
  reservation?: Reservation | null;
}

/** Room in the queue for all writes of one request, so that none of them is refused after others were stored. */
export interface Reservation {
  release(): void;
}

/**
 * Bounds the writes that may wait for the store, and passes them on. Teams take turns by work; what the store has room for goes to it in
 * small chunks, at the latest at the end of the event-loop turn, and is committed together. Every promise is settled.
 */
export class Admission {
  readonly #writer: TraceWriter;
  readonly #budget: WaitingBudget;
  readonly #watch: WriteWatch | null;
  readonly #atStore = new StoreRoom((pauseMs) => this.#resumeAfter(pauseMs));
  /** What waits for room at the store. A team's small writes need not wait for its large ones. */
  readonly #small = new TeamLines<Caller>(smallWorkMax);
  readonly #large = new TeamLines<Caller>(smallWorkMax);
  #gathering: Caller[] = [];
  #gatheringRows = 0;
  #rowsOfTurn = 0;
  #isTurnOpen = false;
  #idle: (() => void)[] = [];
  #resuming: NodeJS.Timeout | undefined;

  constructor(writer: TraceWriter, budget = new WaitingBudget(), watch: WriteWatch | null = null) {
    this.#writer = writer;
    this.#budget = budget;
    this.#watch = watch;
  }

  /** Resolves when the traces are on disk, readable and counted. Rejects with a `Failure`. */
  append(
    teamId: string,
    drafts: readonly TraceDraft[],
    request: IdempotentRequest | null = null,
    { payloads = null, calls = null, reservation = null }: AppendOptions = {},
  ): Promise<Appended> {
    const write: TraceWrite = { teamId, drafts, request, calls, payloads };
    const bytes = writeBytes(write);
    const work = workOf(write, bytes);
    const held = reservation === null ? { rows: drafts.length, bytes } : noRows;
    if (reservation === null && !this.#budget.tryTake(teamId, held.rows, held.bytes)) {
      return Promise.reject(new Failure('queue_full'));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Appended>();
    const caller: Caller = {
      write,
      ...held,
      work,
      startedMs: 0,
      isSettled: false,
      resolve,
      reject,
    };
    const lines = isSmallWork(work) ? this.#small : this.#large;
    if (!lines.has(teamId) && this.#atStore.has(teamId, work)) this.#start(caller);
    else lines.push(teamId, caller);
    return promise;
  }

  /** Reserves room for a request of several writes. Fails if the team's share is used up. */
  reserve(teamId: string, rows: number, bytes: number): Reservation {
    if (!this.#budget.tryTake(teamId, rows, bytes)) throw new Failure('queue_full');
    return {
      release: () => {
        this.#budget.give(teamId, rows, bytes);
        this.#noteIdle();
      },
    };
  }

  /** Resolves when no write is waiting. */
  drain(): Promise<void> {
    if (this.#budget.isEmpty) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.push(resolve);
    return promise;
  }

  #start(caller: Caller): void {
    this.#atStore.take(caller.write.teamId, caller.work);
    caller.startedMs = performance.now();
    this.#gather(caller);
  }

  #startWaiting(): void {
    for (const lines of [this.#small, this.#large]) {
      while (!lines.isEmpty) {
        const next = lines.shift((teamId, { work }) => this.#atStore.has(teamId, work));
        if (next === undefined) break;
        this.#start(next);
      }
    }
  }

  #resumeAfter(pauseMs: number): void {
    clearTimeout(this.#resuming);
    this.#resuming = setTimeout(() => {
      this.#atStore.resume();
      this.#startWaiting();
    }, pauseMs);
  }

  #gather(caller: Caller): void {
    // The writer starts with the first few while the others are still being parsed, so that both threads work at the same time.
    if (this.#gatheringRows >= limits.chunkRowsMax) {
      this.#rowsOfTurn += this.#gatheringRows;
      this.#send(this.#rowsOfTurn < limits.turnRowsMax);
    }
    this.#gathering.push(caller);
    this.#gatheringRows += caller.write.drafts.length;
    if (this.#isTurnOpen) return;
    this.#isTurnOpen = true;
    // There is always something left to send, since a chunk is sent only when the next write arrives.
    setImmediate(() => {
      this.#isTurnOpen = false;
      this.#send(false);
    });
  }

  #send(moreFollow: boolean): void {
    const callers = this.#gathering;
    this.#gathering = [];
    this.#gatheringRows = 0;
    if (!moreFollow) this.#rowsOfTurn = 0;
    const settleAt = (at: number, outcome: WriteOutcome | undefined): void => {
      const caller = callers[at];
      if (caller) this.#settle(caller, outcome ?? noOutcome);
    };
    const tell = (at: number, outcome: WriteOutcome): void => {
      settleAt(at, outcome);
      this.#startWaiting();
    };
    const writes = callers.map(({ write }) => write);
    void Promise.try(() => this.#writer.append(writes, moreFollow, tell))
      .then(
        (outcomes) => callers.forEach((_, at) => settleAt(at, outcomes[at])),
        (cause: unknown) => {
          const failed = { kind: 'failed', code: 'internal', reason: String(cause) } as const;
          callers.forEach((_, at) => settleAt(at, failed));
        },
      )
      .then(() => this.#startWaiting());
  }

  #settle(caller: Caller, outcome: WriteOutcome): void {
    if (caller.isSettled) return;
    caller.isSettled = true;
    const { write, rows, bytes, work, startedMs, resolve, reject } = caller;
    this.#atStore.give(write.teamId, work, performance.now() - startedMs);
    this.#budget.give(write.teamId, rows, bytes);
    if (outcome.kind === 'stored') {
      const appended = recorded(write, outcome);
      this.#watch?.noteStored(write.teamId, appended.traces);
      resolve(appended);
    } else if (outcome.kind === 'replayed') resolve(outcome);
    else {
      this.#watch?.noteFailedWrite(outcome.code);
      reject(new Failure(outcome.code, { cause: outcome.reason }));
    }
    this.#noteIdle();
  }

  #noteIdle(): void {
    if (!this.#budget.isEmpty) return;
    for (const resolveIdle of this.#idle) resolveIdle();
    this.#idle = [];
  }
}

const noRows = { rows: 0, bytes: 0 };

const noOutcome: WriteOutcome = { kind: 'failed', code: 'internal', reason: 'no outcome' };

function recorded(
  { teamId, drafts }: TraceWrite,
  { stamps, duplicates = [] }: Extract<WriteOutcome, { kind: 'stored' }>,
): Recorded {
  const kept = duplicates.length === 0 ? drafts : without(drafts, duplicates);
  const traces = stamps.map((stamp, i) => ({ ...(kept[i] as TraceDraft), ...stamp, teamId }));
  return { kind: 'recorded', traces, duplicates: duplicates.length };
}

function without(drafts: readonly TraceDraft[], leftOut: readonly number[]): TraceDraft[] {
  const indexes = new Set(leftOut);
  return drafts.filter((_, i) => !indexes.has(i));
}
