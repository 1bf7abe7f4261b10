import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import type { Mark } from '../count-once.ts';
import { earlierFromRow, expiryOf, requestFromRow } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import type { IdempotentRequest } from '../trace-writer.ts';
import type { StoredRequest } from '../transfer.ts';

/** Idempotent requests, inside the writer's transaction. */
export interface IdempotencyTable {
  /** An earlier request with this idempotency key that has not expired. */
  find(teamNo: number, request: IdempotentRequest, nowUs: number): EarlierRequest | null;
  /** Adds the request, and deletes some of the team's expired ones. */
  add(teamNo: number, request: IdempotentRequest, traces: StoredRange, nowUs: number): void;
  /** Those of the marks that were added and have not expired. */
  findMarks(teamNo: number, marks: readonly string[], nowUs: number): Map<string, string>;
  /** Adds marks or replaces them, and deletes some expired rows of the team. */
  addMarks(teamNo: number, marks: readonly Mark[], nowUs: number): void;
}

interface StoredRange {
  firstSeq: number;
  count: number;
}

/** The state of a mark is in the column of the body's hash. */
const marksOfStatement = 8;
const requestColumns = 'key_hash, body_hash, first_seq, count, rejected, expires_at_us';
const insertRequest = `insert or replace into idempotency (team_no, ${requestColumns}) values (?, ?, ?, ?, ?, ?, ?)`;

export function openIdempotencyTable(db: DatabaseSync): IdempotencyTable {
  const find = db.prepare(`
    select body_hash, first_seq, count, rejected from idempotency
    where team_no = ? and key_hash = ? and expires_at_us > ?`);
  const insert = db.prepare(insertRequest);
  // A few at a time, so that a transaction does not take long after a busy day.
  const deleteExpired = db.prepare(`
    delete from idempotency where team_no = ?1 and key_hash in (
      select key_hash from idempotency where team_no = ?1 and expires_at_us <= ?2
      limit ?3)`);
  // With a plain join, SQLite reads all rows of the team and looks for each in the list.
  const findMarks = db.prepare(`
    select i.key_hash, i.body_hash from json_each(?2) m cross join idempotency i
    where i.team_no = ?1 and i.key_hash = m.value and i.expires_at_us > ?3`);
  // As parameters: as a JSON list they took twice as long.
  const prepareInsert = (count: number) => {
    const rows = Array.from({ length: count }, (_, i) => {
      return `(?1, ?${2 * i + 3}, ?${2 * i + 4}, 0, 0, null, ?2)`;
    });
    return db.prepare(`
      insert into idempotency (team_no, ${requestColumns}) values ${rows.join()}
      on conflict do update set body_hash = excluded.body_hash, expires_at_us = excluded.expires_at_us`);
  };
  const insertMark = prepareInsert(1);
  const insertMarks = prepareInsert(marksOfStatement);

  return {
    find(teamNo, { keyHash }, nowUs) {
      const row = find.get(teamNo, keyHash, nowUs);
      return row ? earlierFromRow(row) : null;
    },
    add(teamNo, { keyHash, bodyHash, rejected }, { firstSeq, count }, nowUs) {
      deleteExpired.run(teamNo, nowUs, limits.idempotencySweepRowsMax);
      insert.run(teamNo, keyHash, bodyHash, firstSeq, count, rejected, expiryOf(nowUs));
    },
    findMarks(teamNo, marks, nowUs) {
      const rows = findMarks.all(teamNo, JSON.stringify(marks), nowUs);
      return new Map(rows.map((row) => [row['key_hash'] as string, row['body_hash'] as string]));
    },
    addMarks(teamNo, marks, nowUs) {
      if (marks.length === 0) return;
      // Twice as many as are added, so that the table does not grow without end.
      const rowsMax = Math.max(limits.idempotencySweepRowsMax, 2 * marks.length);
      deleteExpired.run(teamNo, nowUs, rowsMax);
      const expiresAtUs = expiryOf(nowUs);
      let at = 0;
      for (; at + marksOfStatement <= marks.length; at += marksOfStatement) {
        const values = marks.slice(at, at + marksOfStatement).flat();
        insertMarks.run(teamNo, expiresAtUs, ...values);
      }
      for (const mark of marks.slice(at)) insertMark.run(teamNo, expiresAtUs, ...mark);
    },
  };
}

export function readRequests(
  db: DatabaseSync,
  teamNo: number,
  nowUs: number,
  after: string,
): StoredRequest[] {
  return db
    .prepare(
      `select ${requestColumns} from idempotency where team_no = ? and expires_at_us > ? and key_hash > ?
       order by key_hash limit ${limits.moveRowsMax}`,
    )
    .all(teamNo, nowUs, after)
    .map(requestFromRow);
}

export function takeRequests(
  db: DatabaseSync,
  teamNo: number,
  requests: readonly StoredRequest[],
): void {
  const insert = db.prepare(insertRequest);
  for (const { keyHash, bodyHash, firstSeq, count, rejected, expiresAtUs } of requests) {
    insert.run(teamNo, keyHash, bodyHash, firstSeq, count, rejected, expiresAtUs);
  }
}
