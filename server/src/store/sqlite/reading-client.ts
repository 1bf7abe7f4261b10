import { Worker } from 'node:worker_threads';
import { FairQueue } from '../../core/fair-queue.ts';
import type { SearchCriteria, Tally, TallyQuery } from '../../core/query.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import { Failure, messageOf } from '../../errors.ts';
import { moduleAt } from '../../installation.ts';
import { limits } from '../../limits.ts';
import { threadMemory } from '../../v8.ts';
import type { TallyList } from '../trace-reader.ts';
import type { FoundPlaces, FoundSeqs, OrderedSearch, SearchBounds } from '../trace-search.ts';
import { WideReads } from '../wide-reads.ts';
import type { OpenFiles } from './open-files.ts';
import type {
  FromReading,
  RankQuestion,
  ReadingData,
  ReadingQuestion,
  SearchQuestion,
  ToReading,
} from './reading-messages.ts';

/** The main thread's client of the reading thread. */
export interface ReadingClient {
  /** All tallies, or the first `rowsMax`, at once. */
  gather(teamId: string, query: TallyQuery, rowsMax: number | null): Promise<readonly Tally[]>;
  /** All tallies of a list that may be too long for memory. */
  list(teamId: string, query: TallyQuery): Promise<TallyList>;
  /** The first groups, ranked by the thread; null if they have to be found in a question of their own. */
  rank(
    teamId: string,
    query: TallyQuery,
    order: RankOrder,
    groupsMax: number,
    isWanted?: () => boolean,
  ): Promise<Report | null>;
  /** Which traces are found. Searches and questions about sums do not wait for each other. */
  search(
    teamId: string,
    criteria: SearchCriteria,
    bounds: SearchBounds,
    isWanted?: () => boolean,
  ): Promise<FoundSeqs>;
  ordered(teamId: string, search: OrderedSearch, isWanted?: () => boolean): Promise<FoundPlaces>;
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
  // A question that reads traces gives way after each chunk, so that one of another team need not wait for its end.
  const turns = new FairQueue(
    {
      runningMax: limits.wideReadTeamsMax,
      teamRunningMax: 1,
      teamWaitingMax: limits.wideReadsWaitingMax,
    },
    () => new Failure('reads_busy'),
  );

  const searches = new FairQueue(
    {
      runningMax: limits.searchesMax,
      teamRunningMax: 1,
      teamWaitingMax: limits.searchesWaitingMax,
    },
    () => new Failure('reads_busy', { say: 'Too many searches of this team are waiting.' }),
  );

  function running(): ReadingThread {
    if (thread !== null && !thread.hasEnded) return thread;
    // If the file was replaced, a new connection would read another database.
    const changed = files.changedBy();
    if (changed !== null) throw unavailable(changed);
    try {
      thread = new ReadingThread(path);
    } catch (error) {
      // The system allows no further threads.
      throw unavailable(`the reading thread cannot be started: ${messageOf(error)}`);
    }
    return thread;
  }

  return {
    gather(teamId, query, rowsMax) {
      const question = { kind: 'gather', teamId, query, rowsMax } as const;
      return turns.run(teamId, async () => running().ask(question));
    },
    list(teamId, query) {
      return wideReads.open(teamId, async () => {
        const own = running();
        const list = ++lists;
        const question = { kind: 'open', list, teamId, query } as const;
        const close = (): void => void own.ask({ kind: 'close', list }).catch(() => {});
        await turns
          .run(teamId, () => own.ask(question))
          .catch((error: unknown) => {
            close();
            throw error;
          });
        return { next: () => own.ask({ kind: 'next', list }), close };
      });
    },
    rank(teamId, query, order, groupsMax, isWanted) {
      const question = { kind: 'rank', teamId, query, order, groupsMax } as const;
      return turns.run(teamId, async () => running().rank(question), isWanted);
    },
    search(teamId, criteria, bounds, isWanted) {
      const question = { kind: 'search', teamId, criteria, bounds } as const;
      return searches.run(teamId, async () => running().find<FoundSeqs>(question), isWanted);
    },
    ordered(teamId, search, isWanted) {
      const question = { kind: 'ordered', teamId, search } as const;
      return searches.run(teamId, async () => running().find<FoundPlaces>(question), isWanted);
    },
    close() {
      thread?.end();
    },
  };
}

/** Every question gets a reply, even if the thread dies. */
class ReadingThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #tickets = 0;
  #endedBy: string | null = null;

  constructor(path: string) {
    const data: ReadingData = { path };
    this.#worker = new Worker(moduleAt('store/sqlite/reading-thread'), {
      workerData: data,
      resourceLimits: threadMemory,
    });
    // The thread keeps the process alive only while a question is open.
    this.#worker.unref();
    this.#worker.on('message', (message: FromReading) => this.#settle(message));
    this.#worker.on('error', (error) => (this.#endedBy = messageOf(error)));
    this.#worker.on('exit', () => this.#failAll());
  }

  get hasEnded(): boolean {
    return this.#endedBy !== null;
  }

  ask(question: ReadingQuestion): Promise<readonly Tally[]> {
    return this.#send(question) as Promise<readonly Tally[]>;
  }

  rank(question: RankQuestion): Promise<Report | null> {
    return this.#send(question) as Promise<Report | null>;
  }

  find<T extends FoundSeqs | FoundPlaces>(question: SearchQuestion): Promise<T> {
    return this.#send(question) as Promise<T>;
  }

  end(): void {
    void this.#worker.terminate();
  }

  #send(question: ToReading['question']): Promise<unknown> {
    if (this.#endedBy !== null) return Promise.reject(unavailable(this.#endedBy));
    const ticket = ++this.#tickets;
    const answer = Promise.withResolvers();
    this.#waiting.set(ticket, answer);
    this.#worker.ref();
    const message: ToReading = { ticket, question };
    this.#worker.postMessage(message);
    return answer.promise;
  }

  #settle(message: FromReading): void {
    const answer = this.#waiting.get(message.ticket);
    this.#waiting.delete(message.ticket);
    if (this.#waiting.size === 0) this.#worker.unref();
    if (message.kind === 'failed') {
      answer?.reject(new Failure(message.code, { cause: message.reason }));
      return;
    }
    answer?.resolve(resultOf(message));
  }

  #failAll(): void {
    this.#endedBy ??= 'the reading thread has stopped';
    for (const { reject } of this.#waiting.values()) reject(unavailable(this.#endedBy));
    this.#waiting.clear();
  }
}

function resultOf(message: Exclude<FromReading, { kind: 'failed' }>): unknown {
  switch (message.kind) {
    case 'found':
      return message.found;
    case 'ranked':
      return message.report;
    case 'tallies':
      return message.tallies;
  }
}

function unavailable(reason: string): Failure {
  return new Failure('store_unavailable', { cause: reason });
}
