import { Worker } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { moduleAt } from '../../installation.ts';
import type { StoreEvents } from '../store.ts';
import type { FromRoller, RollerData } from './roller-messages.ts';

export interface RollerClient {
  close(): Promise<void>;
}

/** Starts the roller's thread, and again if it has died. */
export function startRoller(data: RollerData, { onRollFailed, onRoll }: StoreEvents): RollerClient {
  let isClosing = false;
  let worker = start();

  function start(): { thread: Worker; ended: Promise<void> } {
    const thread = new Worker(moduleAt('store/sqlite/roller-thread'), { workerData: data });
    const ended = Promise.withResolvers<void>();
    thread.on('message', (message: FromRoller) => {
      if (message.kind === 'rolled') onRoll?.(message.report);
      if (message.kind === 'rollFailed') onRollFailed?.(message.failure);
    });
    thread.on('error', (error) => {
      onRollFailed?.({ teamId: 'every team', reason: messageOf(error) });
    });
    thread.on('exit', () => {
      ended.resolve();
      if (isClosing) return;
      setTimeout(() => {
        if (!isClosing) worker = start();
      }, restartMs).unref();
    });
    return { thread, ended: ended.promise };
  }

  return {
    async close() {
      isClosing = true;
      worker.thread.postMessage('stop');
      await worker.ended;
    },
  };
}

const restartMs = 5_000;
