import { draftBytes } from '../../core/trace.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { StoreEvents } from '../store.ts';
import { storedRows } from '../trace-writer.ts';
import type { TraceWrite, TraceWriter, WriteOutcome } from '../trace-writer.ts';
import type { BatchOutcome, StoreBatch } from './store-batch.ts';
import { failLate, maySendOn, rowsWaiting, takeFairly, takeOfTeam } from './writing-lines.ts';
import type { CallSlot, RunningCall, TeamLine, Waiting } from './writing-lines.ts';

/**
 * Writes that arrive while a call is running share the next one, whatever teams they belong to. If many are waiting, the next call is sent
 * before the running one has ended, so that the database always has something to do. A team that another process has locked gets calls of
 * its own until that works again, so that it delays no other team. On a Citus cluster the teams of each node have their own calls.
 */
export class Writer implements TraceWriter {
  readonly #store: StoreBatch;
  readonly #isCluster: boolean;
  readonly #onCommit: StoreEvents['onCommit'];
  /** Teams with waiting or running writes, in the order of their turns. */
  readonly #lines = new Map<string, TeamLine>();
  /** By node. */
  readonly #slots = new Map<number | null, CallSlot[]>();
  #busySlots = 0;
  #apartRunning = 0;
  #idle: (() => void)[] = [];

  constructor(store: StoreBatch, isCluster: boolean, onCommit?: StoreEvents['onCommit']) {
    this.#store = store;
    this.#onCommit = onCommit;
    this.#isCluster = isCluster;
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
        // This caller need not wait for another transaction.
        tell(i, outcome);
        left -= 1;
        if (left === 0) resolve(outcomes);
      };
      const bytes = write.drafts.reduce((sum, draft) => sum + draftBytes(draft), 0);
      this.#lineOf(write.teamId).waiting.push({ write, bytes, sinceMs, settle });
    }
    if (!moreFollow) this.#start();
    else if (!this.#isCluster) this.#start(1);
    return promise;
  }

  /** Throws if a write has waited too long. */
  ping(): void {
    const nowMs = performance.now();
    for (const { running, waiting } of this.#lines.values()) {
      const ageMs = nowMs - ((running[0] ?? waiting[0])?.sinceMs ?? nowMs);
      if (ageMs > limits.writerStallMsMax) {
        const cause = `a write has waited for ${Math.round(ageMs)} ms`;
        throw new Failure('store_unavailable', { cause });
      }
    }
  }

  /** Resolves when no write is waiting. */
  drain(): Promise<void> {
    if (this.#lines.size === 0) return Promise.resolve();
    this.#start();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.push(resolve);
    return promise;
  }

  #lineOf(teamId: string): TeamLine {
    let line = this.#lines.get(teamId);
    if (!line) {
      line = { teamId, waiting: [], running: [], isApart: false };
      this.#lines.set(teamId, line);
    }
    return line;
  }

  /** While more writes are being read, few connections may be used, so that the database has something to do and most writes go together. */
  #start(busyMax: number = limits.postgresSharedWritersMax): void {
    const waiting: TeamLine[] = [];
    for (const line of this.#lines.values()) {
      failLate(line);
      if (line.waiting.length > 0) waiting.push(line);
      else if (line.running.length === 0) this.#lines.delete(line.teamId);
    }
    for (const [node, lines] of this.#byNode(waiting)) this.#startShared(node, lines, busyMax);
    for (const line of waiting) {
      if (this.#apartRunning >= apartMax) break;
      if (line.isApart && line.running.length === 0) void this.#runApart(line);
    }
    if (this.#lines.size > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle = [];
  }

  #byNode(waiting: readonly TeamLine[]): Map<number | null, readonly TeamLine[]> {
    if (!this.#isCluster) return new Map([[0, waiting]]);
    return Map.groupBy(waiting, ({ teamId }) => this.#store.nodeOf(teamId));
  }

  #startShared(node: number | null, lines: readonly TeamLine[], busyMax: number): void {
    // An idle connection first.
    for (const slot of this.#slotsOf(node).toSorted((a, b) => a.calls - b.calls)) {
      if (slot.calls === 0 && this.#busySlots >= busyMax) continue;
      if (slot.calls >= limits.postgresCallsInLineMax) continue;
      const ready = lines.filter((line) => maySendOn(slot, line));
      const rowsMin = slot.calls === 0 ? 1 : limits.postgresFollowingRowsMin;
      if (ready.length === 0 || rowsWaiting(ready) < rowsMin) continue;
      void this.#runShared(slot, takeFairly(ready));
    }
  }

  #slotsOf(node: number | null): CallSlot[] {
    const length = this.#isCluster ? 1 : limits.postgresSharedWritersMax;
    return this.#slots.getOrInsertComputed(node, () =>
      Array.from({ length }, () => ({
        node,
        connection: this.#store.openConnection(),
        calls: 0,
      })),
    );
  }

  async #runShared(slot: CallSlot, taken: readonly Waiting[]): Promise<void> {
    if (slot.calls === 0) this.#busySlots += 1;
    slot.calls += 1;
    const lines = this.#occupy(taken, slot);
    const startMs = performance.now();
    const writes = taken.map(({ write }) => write);
    const outcomes = await this.#store.ofTeams(writes, slot.connection);
    slot.calls -= 1;
    if (slot.calls === 0) this.#busySlots -= 1;
    this.#report(taken, outcomes, startMs);
    this.#release(lines);
    this.#settle(taken, outcomes);
  }

  async #runApart(line: TeamLine): Promise<void> {
    this.#apartRunning += 1;
    const taken = takeOfTeam(line);
    const lines = this.#occupy(taken, null);
    const startMs = performance.now();
    const outcomes = await this.#store.ofTeam(taken.map(({ write }) => write));
    this.#apartRunning -= 1;
    this.#report(taken, outcomes, startMs);
    // The lock was free again.
    if (outcomes.some(({ kind }) => kind !== 'failed')) line.isApart = false;
    this.#release(lines);
    this.#settle(taken, outcomes);
  }

  #report(taken: readonly Waiting[], outcomes: readonly BatchOutcome[], startMs: number): void {
    if (!this.#onCommit) return;
    const rows = storedRows(outcomes.filter((outcome) => outcome.kind !== 'locked'));
    if (rows === 0) return;
    const bytes = taken.reduce((sum, one) => sum + one.bytes, 0);
    this.#onCommit({ rows, bytes, tookMs: performance.now() - startMs });
  }

  /** Returns the calls of the lines of these writes. */
  #occupy(taken: readonly Waiting[], slot: CallSlot | null): Map<TeamLine, RunningCall> {
    const calls = new Map<TeamLine, RunningCall>();
    for (const { write, sinceMs } of taken) {
      const line = this.#lineOf(write.teamId);
      if (!calls.has(line)) calls.set(line, { slot, sinceMs });
    }
    for (const [line, call] of calls) {
      line.running.push(call);
      // The team's next turn comes after those of the others.
      this.#lines.delete(line.teamId);
      this.#lines.set(line.teamId, line);
    }
    return calls;
  }

  #release(calls: ReadonlyMap<TeamLine, RunningCall>): void {
    for (const [{ running }, call] of calls) running.splice(running.indexOf(call), 1);
  }

  #settle(taken: readonly Waiting[], outcomes: readonly BatchOutcome[]): void {
    const again = new Map<TeamLine, Waiting[]>();
    for (const [i, one] of taken.entries()) {
      const outcome = outcomes[i] ?? noOutcome;
      if (outcome.kind === 'locked') {
        const line = this.#lineOf(one.write.teamId);
        line.isApart = true;
        again.set(line, [...(again.get(line) ?? []), one]);
      } else {
        one.settle(outcome);
      }
    }
    for (const [line, writes] of again) line.waiting.unshift(...writes);
    this.#start();
  }
}

const apartMax = limits.postgresWritersMax - limits.postgresSharedWritersMax;
const noOutcome: WriteOutcome = { kind: 'failed', code: 'internal', reason: 'no outcome' };
