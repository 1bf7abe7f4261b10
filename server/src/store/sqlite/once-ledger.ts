import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import type { Once, WriteOutcome } from '../store.ts';

/** The requests that may be stored only once, inside the writer's transaction. */
export interface OnceLedger {
  /** What a request of this key was answered before, within its life; null where this is the first. */
  earlier(teamNo: number, once: Once, nowUs: number): WriteOutcome | null;
  /** Notes the request, and forgets some of the team's that have expired. */
  note(teamNo: number, once: Once, place: { firstSeq: number; count: number }, nowUs: number): void;
}

export function openOnceLedger(db: DatabaseSync): OnceLedger {
  const find = db.prepare(`
    select body_hash, first_seq, count, rejected from idempotency
    where team_no = ? and key_hash = ? and expires_at_us > ?`);
  const insert = db.prepare(`
    insert or replace into idempotency (team_no, key_hash, body_hash, first_seq, count, rejected, expires_at_us)
    values (?, ?, ?, ?, ?, ?, ?)`);
  // A few at a time: a transaction must not stand still because yesterday was busy.
  const forget = db.prepare(`
    delete from idempotency where team_no = ?1 and key_hash in (
      select key_hash from idempotency where team_no = ?1 and expires_at_us <= ?2
      limit ${limits.idempotencySweepRowsMax})`);

  return {
    earlier(teamNo, { keyHash, bodyHash }, nowUs) {
      const row = find.get(teamNo, keyHash, nowUs);
      if (!row) return null;
      if (row['body_hash'] !== bodyHash) {
        return { kind: 'refused', code: 'idempotency_key_reused', reason: 'another body' };
      }
      return {
        kind: 'replayed',
        firstSeq: row['first_seq'] as number,
        count: row['count'] as number,
        rejected: row['rejected'] as string | null,
      };
    },

    note(teamNo, { keyHash, bodyHash, rejected }, { firstSeq, count }, nowUs) {
      forget.run(teamNo, nowUs);
      const expiresAtUs = nowUs + limits.idempotencyLifeMs * 1000;
      insert.run(teamNo, keyHash, bodyHash, firstSeq, count, rejected, expiresAtUs);
    },
  };
}
