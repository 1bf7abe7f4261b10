import { Worker } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { moduleAt } from '../../installation.ts';
import { limits } from '../../limits.ts';
import type { RollFailure, RollReport } from '../store.ts';
import { threadMemory } from '../../v8.ts';
import type {
  FromRoller,
  RollerData,
  ToRoller,
  WrittenTeam,
  WrittenTeams,
} from './roller-messages.ts';

export interface RollerClient {
  /** These traces were committed. */
  written(teams: readonly WrittenTeam[]): void;
  /** Stops rolling after the transaction in progress. What is not rolled up yet stays in the tail. */
  close(): Promise<void>;
}

interface RollerThread {
  send(message: ToRoller): void;
  terminate(): void;
  ended: Promise<void>;
}

export const noRoller: RollerClient = { written: () => {}, close: () => Promise.resolve() };

/** Starts the rolling thread with the first write, and for a server also if there are none, since another one may have left a tail. */
export function openRoller(
  data: RollerData,
  onRollFailed: (failure: RollFailure) => void,
  onRoll: (report: RollReport) => void,
): RollerClient {
  let thread: RollerThread | null = null;
  let startAtMs = 0;
  let isClosed = false;
  /** By team. Sent a few times per second, since a message costs more than the note. */
  const news = new Map<string, WrittenTeam>();
  let timer: NodeJS.Timeout | null = null;

  function start(): RollerThread {
    const worker = new Worker(moduleAt('store/postgres/roller-thread'), {
      workerData: data,
      resourceLimits: threadMemory,
    });
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    worker.on('message', (message: FromRoller) => {
      if (message.kind === 'failed') onRollFailed(message.failure);
      else onRoll(message.report);
    });
    worker.on('error', (error) => {
      onRollFailed({ teamId: 'every team', reason: messageOf(error) });
    });
    worker.on('exit', () => {
      thread = null;
      startAtMs = performance.now() + limits.rollRetryMsMin;
      // The next thread finds the tails of this one.
      if (data.role === 'server' && !isClosed) later(limits.rollRetryMsMin);
      resolve();
    });
    return {
      ended,
      send: (message) => worker.postMessage(message),
      terminate: () => void worker.terminate(),
    };
  }

  function flush(): void {
    timer = null;
    if (isClosed) return;
    if (performance.now() < startAtMs) {
      later(limits.rollRetryMsMin);
      return;
    }
    thread ??= start();
    const teams: WrittenTeams = { teamId: [], fromSeq: [], lastSeq: [] };
    for (const { teamId, fromSeq, lastSeq } of news.values()) {
      teams.teamId.push(teamId);
      teams.fromSeq.push(fromSeq);
      teams.lastSeq.push(lastSeq);
    }
    news.clear();
    thread.send({ kind: 'written', teams });
  }

  function later(ms: number): void {
    timer ??= setTimeout(flush, ms).unref();
  }

  if (data.role === 'server') later(limits.rollFirstSweepMs);
  return {
    written(teams) {
      for (const team of teams) {
        const { fromSeq } = news.get(team.teamId) ?? team;
        news.set(team.teamId, { ...team, fromSeq });
      }
      if (timer && !thread) {
        clearTimeout(timer);
        timer = null;
      }
      later(limits.rollNoticeMs);
    },
    async close() {
      isClosed = true;
      if (timer) clearTimeout(timer);
      if (!thread) return;
      thread.send({ kind: 'close' });
      // If PostgreSQL does not answer, it rolls back the transaction when the connection is gone.
      const late = setTimeout(thread.terminate, limits.rollStopMsMax);
      await thread.ended;
      clearTimeout(late);
    },
  };
}
