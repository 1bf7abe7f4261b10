import { draftBytes } from '../../core/trace.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { StoreEvents } from '../store.ts';
import { storedRows } from '../trace-writer.ts';
import type { TraceWrite, TraceWriter, WriteOutcome } from '../trace-writer.ts';
import type { LockedWrite, StoreBatch } from './store-batch.ts';
import { failLate, rowsWaiting, takeFairly, takeOfTeam } from './writing-lines.ts';
import type { TeamLine, Transaction, Waiting } from './writing-lines.ts';

/**
 * Writes that arrive while a transaction is running share the next one, whatever teams they belong to. If many are waiting, the next one
 * is sent before the running one has ended, so that the database always has something to do. A team that another process has
 * locked gets a transaction of its own until that works again, so that it delays no other team. On a Citus cluster the teams of each node
 * have their own transactions, and so has a team whose node or counter is not known.
 */
export class Writer implements TraceWriter {
  readonly #store: StoreBatch;
  readonly #isCluster: boolean;
  readonly #onCommit: StoreEvents['onCommit'];
  /** Teams with waiting or running writes, in the order of their turns. */
  readonly #lines = new Map<string, TeamLine>();
  #placesTaken = 0;
  /** Of a cluster, those with a transaction of several teams. */
  readonly #busyNodes = new Set<number>();
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

  /** While more writes are being read, few places may be taken, so that the database has something to do and most writes go together. */
  #start(placesMax: number = limits.postgresSharedWritersMax): void {
    const free = [...this.#lines.values()].filter(({ running }) => running.length === 0);
    for (const line of free) {
      failLate(line);
      if (line.waiting.length === 0) this.#lines.delete(line.teamId);
    }
    const waiting = free.filter((line) => line.waiting.length > 0);
    const byNode = Map.groupBy(waiting, (line) => this.#nodeOf(line));
    const apart = byNode.get(null) ?? [];
    byNode.delete(null);
    this.#startShared(byNode as Map<number, TeamLine[]>, placesMax);
    for (const line of apart) {
      if (this.#apartRunning >= apartMax) break;
      void this.#runApart(line, takeOfTeam(line));
    }
    if (this.#lines.size > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle = [];
  }

  /** Null if the team needs a transaction of its own. */
  #nodeOf({ teamId, waiting, isApart }: TeamLine): number | null {
    if (isApart) return null;
    // Which of the calls are stored depends on those that are stored already, so the counter must be locked first.
    if (this.#isCluster && waiting.some(({ write }) => write.calls)) return null;
    return this.#store.nodeOf(teamId);
  }

  #startShared(free: ReadonlyMap<number, readonly TeamLine[]>, placesMax: number): void {
    for (const [node, lines] of free) {
      if (this.#placesTaken >= placesMax) break;
      if (this.#busyNodes.has(node)) continue;
      this.#placesTaken += 1;
      if (this.#isCluster) this.#busyNodes.add(node);
      void this.#runShared(takeFairly(lines), { hasPlace: true, node });
    }
    // A transaction that follows another keeps its place. Busy teams could keep all of them for ever.
    const isWaiting = ({ running, waiting }: TeamLine) =>
      running.length === 0 && waiting.length > 0;
    if (free.values().some((lines) => lines.some(isWaiting))) return;
    const following = this.#following();
    if (rowsWaiting(following) < limits.postgresFollowingRowsMin) return;
    void this.#runShared(takeFairly(following), { hasPlace: false, node: 0 });
  }

  /** The teams whose next transaction may be sent now, although one is running. None if such a transaction is under way already. */
  #following(): TeamLine[] {
    const all = [...this.#lines.values()];
    if (all.some(({ running }) => running.length > 1)) return [];
    const lines = all.filter(
      ({ running, waiting, isApart }) => running.length === 1 && waiting.length > 0 && !isApart,
    );
    const lanes = lines.map(({ teamId }) => this.#store.laneOf(teamId));
    const lane = lanes.find((one) => one !== null);
    return lane ? lines.filter((_, i) => lanes[i] === lane) : [];
  }

  async #runShared(taken: readonly Waiting[], transaction: Transaction): Promise<void> {
    const lines = this.#occupy(taken, transaction);
    const startMs = performance.now();
    const outcomes = await this.#store.ofTeams(taken.map(({ write }) => write));
    this.#report(taken, outcomes, startMs);
    this.#release(lines, transaction);
    if (transaction.hasPlace) this.#passOnPlace(lines, transaction);
    this.#settle(taken, outcomes);
  }

  /** To a transaction that was sent after the one that has ended, if there is one. Two may be followed by the same one. */
  #passOnPlace(lines: readonly TeamLine[], { node }: Transaction): void {
    const after = lines.flatMap(({ running }) => running.map(({ transaction }) => transaction));
    const heir = after.find(({ hasPlace }) => !hasPlace);
    if (heir) {
      heir.hasPlace = true;
      return;
    }
    this.#placesTaken -= 1;
    this.#busyNodes.delete(node);
  }

  async #runApart(line: TeamLine, taken: readonly Waiting[]): Promise<void> {
    this.#apartRunning += 1;
    const transaction = { hasPlace: false, node: 0 };
    const lines = this.#occupy(taken, transaction);
    const startMs = performance.now();
    const outcomes = await this.#store.ofTeam(
      line.teamId,
      taken.map(({ write }) => write),
    );
    this.#apartRunning -= 1;
    this.#report(taken, outcomes, startMs);
    // The lock was free again.
    if (outcomes.some(({ kind }) => kind !== 'failed')) line.isApart = false;
    this.#release(lines, transaction);
    this.#settle(taken, outcomes);
  }

  #report(
    taken: readonly Waiting[],
    outcomes: readonly (WriteOutcome | LockedWrite)[],
    startMs: number,
  ): void {
    if (!this.#onCommit) return;
    const rows = storedRows(outcomes.filter((outcome) => outcome.kind !== 'locked'));
    if (rows === 0) return;
    const bytes = taken.reduce((sum, one) => sum + one.bytes, 0);
    this.#onCommit({ rows, bytes, tookMs: performance.now() - startMs });
  }

  /** Returns the lines of these writes. */
  #occupy(taken: readonly Waiting[], transaction: Transaction): TeamLine[] {
    const lines = new Map<TeamLine, number>();
    for (const { write, sinceMs } of taken) {
      const line = this.#lineOf(write.teamId);
      if (!lines.has(line)) lines.set(line, sinceMs);
    }
    for (const [line, sinceMs] of lines) {
      line.running.push({ transaction, sinceMs });
      // The team's next turn comes after those of the others.
      this.#lines.delete(line.teamId);
      this.#lines.set(line.teamId, line);
    }
    return [...lines.keys()];
  }

  #release(lines: readonly TeamLine[], ended: Transaction): void {
    for (const { running } of lines) {
      const at = running.findIndex(({ transaction }) => transaction === ended);
      running.splice(at, 1);
    }
  }

  #settle(taken: readonly Waiting[], outcomes: readonly (WriteOutcome | LockedWrite)[]): void {
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
