import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { expiryOf } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import { earlierFromRow, requestFromRow } from '../key-rows.ts';
import type { IdempotentRequest } from '../trace-writer.ts';
import type { StoredRequest } from '../transfer.ts';

/** Idempotent requests, inside the writer's transaction. */
export interface IdempotencyTable {
  /** An earlier request with this idempotency key that has not expired. */
  find(teamNo: number, request: IdempotentRequest, nowUs: number): EarlierRequest | null;
  /** Adds the request, and deletes some of the team's expired ones. */
  add(teamNo: number, request: IdempotentRequest, traces: StoredRange, nowUs: number): void;
}

interface StoredRange {
  firstSeq: number;
  count: number;
}

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
      limit ${limits.idempotencySweepRowsMax})`);

  return {
    find(teamNo, { keyHash }, nowUs) {
      const row = find.get(teamNo, keyHash, nowUs);
      return row ? earlierFromRow(row) : null;
    },
    add(teamNo, { keyHash, bodyHash, rejected }, { firstSeq, count }, nowUs) {
      deleteExpired.run(teamNo, nowUs);
      insert.run(teamNo, keyHash, bodyHash, firstSeq, count, rejected, expiryOf(nowUs));
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
