/**
 * The writer thread. It takes all waiting messages, commits them together, and replies. While it waits for the disk, the next
 * batch gathers at its port: this is group commit without a timer. Rows are inserted into the open transaction as they arrive, so
 * that both threads work while the main thread still parses the rest of its turn.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { openClock } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import type { KeyUse } from '../key-table.ts';
import { writeBytes } from '../trace-writer.ts';
import { openWriting } from './connection.ts';
import { watchOpenFiles } from './open-files.ts';
import { packOutcomes, unpackWrites } from './writer-messages.ts';
import type { FromWriter, ToWriter, WriterData } from './writer-messages.ts';
import { Writer } from './writer.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const { path, clock } = workerData as WriterData;
const db = openWriting(path);
const writer = new Writer(db, watchOpenFiles(path), openClock(clock));

/** The tickets taken since the last commit. */
let tickets: number[] = [];
/** By API key, so that their number stays small while the file is busy. */
const keyUses = new Map<string, KeyUse>();
let rows = 0;
let bytes = 0;
/** The main thread has announced that no more writes follow; until then the transaction stays open. */
let isDue = false;

port.on('message', (first: ToWriter) => {
  let message: ToWriter | undefined = first;
  while (message) {
    if (message.kind === 'close') return close();
    take(message);
    if (rows >= limits.commitRowsMax || bytes >= limits.commitBytesMax) commit();
    message = receiveMessageOnPort(port)?.message as ToWriter | undefined;
  }
  if (isDue) commit();
});
answer({ kind: 'ready' });

function take(message: Exclude<ToWriter, { kind: 'close' }>): void {
  if (message.kind === 'keyUse') {
    keyUses.set(message.use.keyId, message.use);
    // It is written with the open transaction, alone if there is none, or with the next one if the file is busy.
    if (tickets.length === 0) noteKeyUses();
    return;
  }
  const writes = unpackWrites(message.writes);
  writer.take(writes);
  tickets.push(message.ticket);
  for (const write of writes) {
    rows += write.drafts.length;
    bytes += writeBytes(write);
  }
  if (!message.moreFollow) isDue = true;
}

function noteKeyUses(): void {
  const { isNoted, brokenBy } = writer.noteKeyUses([...keyUses.values()]);
  if (isNoted) keyUses.clear();
  if (brokenBy === null) return;
  const nothing = { tickets: [], outcomes: [], clockJumps: [], bytes: 0, tookMs: 0 };
  answer({ kind: 'committed', ...nothing, brokenBy });
}

function commit(): void {
  const startMs = performance.now();
  const { outcomes, clockJumps, brokenBy } = writer.commit([...keyUses.values()]);
  const tookMs = performance.now() - startMs;
  const packed = packOutcomes(outcomes);
  answer({ kind: 'committed', tickets, outcomes: packed, clockJumps, brokenBy, bytes, tookMs });
  tickets = [];
  keyUses.clear();
  rows = 0;
  bytes = 0;
  isDue = false;
}

function close(): void {
  if (tickets.length > 0) commit();
  else if (keyUses.size > 0) noteKeyUses();
  db.close();
  port.close();
}

function answer(message: FromWriter): void {
  port.postMessage(message);
}
