import { Worker } from 'node:worker_threads';
import type { GroupMeasures } from '../../core/analytics.ts';
import { FairQueue } from '../../core/fair-queue.ts';
import type { Dimension } from '../../core/rollup.ts';
import { Failure, messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { GroupList } from '../trace-reader.ts';
import { WideReads } from '../wide-reads.ts';
import type { OpenFiles } from './open-files.ts';
import type {
  FromReading,
  GroupRows,
  ReadingData,
  ReadingQuestion,
  ToReading,
} from './reading-messages.ts';
import { groupFromRow } from './measures-rows.ts';

/** The main thread's client of the reading thread. */
export interface ReadingClient {
  topGroups(
    teamId: string,
    dimension: Dimension,
    rowsMax: number,
  ): Promise<readonly GroupMeasures[]>;
  allGroups(teamId: string, dimension: Dimension): Promise<GroupList>;
  close(): void;
}

/** Starts the thread on the first question, and again if it has died. Most servers never need it. */
export function openReadingClient(
  path: string,
  files: Pick<OpenFiles, 'changedBy'>,
): ReadingClient {
  let thread: ReadingThread | null = null;
  let lists = 0;
  const wideReads = new WideReads(limits.wideReadsMax);
  const turns = new FairQueue(
    { runningMax: 1, teamRunningMax: 1, teamWaitingMax: limits.wideReadsWaitingMax },
    () => new Failure('reads_busy'),
  );

  function running(): ReadingThread {
    if (thread !== null && !thread.hasEnded) return thread;
    // If the file was replaced, a new connection would read another database.
    const changed = files.changedBy();
    if (changed !== null) throw unavailable(changed);
    thread = new ReadingThread(path);
    return thread;
  }

  return {
    async topGroups(teamId, dimension, rowsMax) {
      const question = { kind: 'top', teamId, dimension, rowsMax } as const;
      return turns.run(teamId, async () => groupsOf(await running().ask(question)));
    },
    allGroups(teamId, dimension) {
      return wideReads.open(teamId, async () => {
        const own = running();
        const list = ++lists;
        const question = { kind: 'open', list, teamId, dimension } as const;
        const close = (): void => void own.ask({ kind: 'close', list }).catch(() => {});
        await turns
          .run(teamId, () => own.ask(question))
          .catch((error: unknown) => {
            close();
            throw error;
          });
        return { next: async () => groupsOf(await own.ask({ kind: 'next', list })), close };
      });
    },
    close() {
      thread?.end();
    },
  };
}

function groupsOf(rows: GroupRows): GroupMeasures[] {
  return rows.map(groupFromRow);
}

/** Every question gets a reply, even if the thread dies. */
class ReadingThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<GroupRows>>();
  #tickets = 0;
  #endedBy: string | null = null;

  constructor(path: string) {
    const data: ReadingData = { path };
    const url = new URL('reading-thread.ts', import.meta.url);
    this.#worker = new Worker(url, { workerData: data });
    // The thread keeps the process alive only while a question is open.
    this.#worker.unref();
    this.#worker.on('message', (message: FromReading) => this.#settle(message));
    this.#worker.on('error', (error) => (this.#endedBy = messageOf(error)));
    this.#worker.on('exit', () => this.#failAll());
  }

  get hasEnded(): boolean {
    return this.#endedBy !== null;
  }

  ask(question: ReadingQuestion): Promise<GroupRows> {
    if (this.#endedBy !== null) return Promise.reject(unavailable(this.#endedBy));
    const ticket = ++this.#tickets;
    const answer = Promise.withResolvers<GroupRows>();
    this.#waiting.set(ticket, answer);
    this.#worker.ref();
    const message: ToReading = { ticket, question };
    this.#worker.postMessage(message);
    return answer.promise;
  }

  end(): void {
    void this.#worker.terminate();
  }

  #settle(message: FromReading): void {
    const answer = this.#waiting.get(message.ticket);
    this.#waiting.delete(message.ticket);
    if (this.#waiting.size === 0) this.#worker.unref();
    if (message.kind === 'rows') answer?.resolve(message.rows);
    else answer?.reject(new Failure(message.code, { cause: message.reason }));
  }

  #failAll(): void {
    this.#endedBy ??= 'the reading thread has stopped';
    for (const { reject } of this.#waiting.values()) reject(unavailable(this.#endedBy));
    this.#waiting.clear();
  }
}

function unavailable(reason: string): Failure {
  return new Failure('store_unavailable', { cause: reason });
}
