/**
 * The writer's thread. It takes one message, then all that wait behind it, commits them together, and answers. While it
 * waits for the disk, the next batch gathers at its port: that is the whole of group commit, without a timer.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { openClock } from '../../core/clock.ts';
import { draftBytes } from '../../core/trace.ts';
import { limits } from '../../limits.ts';
import type { WriteOutcome } from '../store.ts';
import { openWriting } from './connection.ts';
import type { FromWriter, ToWriter, WriterData } from './writer-messages.ts';
import { openWriter } from './writer.ts';
import type { KeyUse } from './writer.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const { path, clock } = workerData as WriterData;
const db = openWriting(path);
const writer = openWriter(db, openClock(clock));

type AppendMessage = Extract<ToWriter, { kind: 'append' }>;

port.on('message', (first: ToWriter) => {
  const batch = gather(first);
  if (batch.appends.length > 0 || batch.keyUses.length > 0) commit(batch);
  if (batch.isLast) {
    db.close();
    port.close();
  }
});
answer({ kind: 'ready' });

interface Batch {
  appends: AppendMessage[];
  keyUses: KeyUse[];
  isLast: boolean;
}

function gather(first: ToWriter): Batch {
  const batch: Batch = { appends: [], keyUses: [], isLast: false };
  let rows = 0;
  let bytes = 0;
  let message: ToWriter | undefined = first;
  while (message) {
    switch (message.kind) {
      case 'append':
        batch.appends.push(message);
        for (const { drafts } of message.writes) {
          rows += drafts.length;
          for (const draft of drafts) bytes += draftBytes(draft);
        }
        break;
      case 'keyUse':
        batch.keyUses.push(message.use);
        break;
      case 'close':
        batch.isLast = true;
        break;
    }
    if (rows >= limits.commitRowsMax || bytes >= limits.commitBytesMax) break;
    message = receiveMessageOnPort(port)?.message as ToWriter | undefined;
  }
  return batch;
}

function commit({ appends, keyUses }: Batch): void {
  const writes = appends.flatMap((append) => append.writes);
  const { outcomes, clockJumps, brokenBy } = writer.commit(writes, keyUses);
  let at = 0;
  const answers = appends.map((append) => {
    const own: WriteOutcome[] = outcomes.slice(at, at + append.writes.length);
    at += append.writes.length;
    return { ticket: append.ticket, outcomes: own };
  });
  answer({ kind: 'committed', answers, clockJumps, brokenBy });
}

function answer(message: FromWriter): void {
  port.postMessage(message);
}
