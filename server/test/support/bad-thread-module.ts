import { readlinkSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { DecodeJob, DecodeReply } from '../../src/http/decoding/decode-job.ts';
import type { BadThread } from './bad-thread.ts';

const empty: DecodeReply = {
  kind: 'decoded',
  parts: [],
  bodyHash: null,
  rejected: '[]',
  signals: null,
};

/** Runs as a thread. A body of the team "good" is answered as an empty one. */
export function misbehave(does: BadThread): void {
  parentPort?.on('message', (job: DecodeJob) => {
    if (job.teamId === 'good') {
      parentPort?.postMessage(empty);
      return;
    }
    if (does === 'loops') for (;;);
    if (does === 'exits') process.exit(3);
    if (does === 'throws') throw new Error('planned by this test');
    if (does === 'runs out of memory') {
      const kept: object[] = [];
      for (;;) kept.push(Array.from({ length: 1_000 }, () => ({})));
    }
  });
  const threadId = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  parentPort?.postMessage({ kind: 'ready', threadId });
}
