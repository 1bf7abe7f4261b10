/** The thread for slow reads. It has its own connection, so it cannot block the short reads of the main thread or show them old data. */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { openReading } from './connection.ts';
import type {
  FromReading,
  GroupRows,
  ReadingData,
  ReadingQuestion,
  ToReading,
} from './reading-messages.ts';
import { measureColumns, prepareMeasures, selectGroups } from './measures-rows.ts';
import type { MeasuresStatement } from './measures-rows.ts';
import { failureOf } from './sqlite-failures.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const db = openReading((workerData as ReadingData).path);
const readTop = prepareMeasures(db, `${selectGroups} limit ?`);

/** Lists that are being read, each in a temporary table, so that a slow peer does not keep a read transaction open. */
const lists = new Map<number, { read: MeasuresStatement; lastRow: number }>();

port.on('message', ({ ticket, question }: ToReading) => {
  let reply: FromReading;
  try {
    reply = { kind: 'rows', ticket, rows: answer(question) };
  } catch (error) {
    reply = { kind: 'failed', ticket, code: failureOf(error).code, reason: messageOf(error) };
  }
  port.postMessage(reply);
});

function answer(question: ReadingQuestion): GroupRows {
  switch (question.kind) {
    case 'top':
      return readTop.all(question.teamId, question.dimension, question.rowsMax);
    case 'open':
      open(question);
      return [];
    case 'next':
      return next(question.list);
    case 'close':
      lists.delete(question.list);
      db.exec(`drop table if exists temp.${tableOf(question.list)}`);
      return [];
  }
}

function open({ list, teamId, dimension }: Extract<ReadingQuestion, { kind: 'open' }>): void {
  const table = tableOf(list);
  db.prepare(`create temp table ${table} as ${selectGroups}`).run(teamId, dimension);
  const read = prepareMeasures(
    db,
    `select key, ${measureColumns} from temp.${table} where rowid > ? order by rowid limit ${limits.groupChunkRows}`,
  );
  lists.set(list, { read, lastRow: 0 });
}

function next(list: number): GroupRows {
  const open = lists.get(list);
  if (!open) throw new Error(`there is no list ${list}`);
  const rows = open.read.all(open.lastRow);
  open.lastRow += rows.length;
  return rows;
}

function tableOf(list: number): string {
  return `groups_${list}`;
}
