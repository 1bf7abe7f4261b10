import type { DatabaseSync } from 'node:sqlite';
import { RollupBatch } from '../../core/rollup.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { nameIsTaken } from '../mover.ts';
import type { MovedKey, MovedRequest, Mover, PackedTrace } from '../mover.ts';
import { packedBytes, payloadsOfRow } from '../payload.ts';
import { openBooks } from './books.ts';
import type { Books } from './books.ts';
import { inTransaction } from './connection.ts';
import { keyFromRow, noteKeyUse, selectKey } from './directory.ts';
import { auditTraceFromRow, traceColumns } from './rows.ts';
import type { Row } from './rows.ts';
import { holdServerLock } from './server-lock.ts';
import { keyOf, seqOfKey } from './trace-key.ts';

/** Statements are prepared when they are needed: a server never moves house. */
export function openMover(
  db: DatabaseSync,
  path: string,
  onClose: (release: () => void) => void,
): Mover {
  let isClaimed = false;
  let opened: Books | null = null;
  const books = (): Books => (opened ??= openBooks(db));
  const teamNo = '(select no from teams where id = ?)';

  return {
    async claim() {
      if (isClaimed) return null;
      try {
        onClose(holdServerLock(path));
        isClaimed = true;
        return null;
      } catch (error) {
        if (error instanceof OperatorError) return 'a server';
        throw error;
      }
    },

    async place(teamId) {
      const { firstSeq, lastSeq } = books().counter(teamId);
      return { firstSeq, lastSeq };
    },

    async packedTraces(teamId, fromSeq) {
      const { teamNo: no } = books().counter(teamId);
      const rows = db
        .prepare(
          `select ${seqOfKey} as seq, ${traceColumns} from traces
           where key between ${keyOf} and ${keyOf} order by key`,
        )
        .iterate(no, fromSeq, no, fromSeq + limits.moveRowsMax - 1);
      const traces: PackedTrace[] = [];
      let bytes = 0;
      for (const row of rows) {
        const trace = { ...auditTraceFromRow(row), ...payloadsOfRow(row) };
        traces.push(trace);
        bytes += packedBytes(trace);
        if (bytes >= limits.moveBytesMax) break;
      }
      return traces;
    },

    async knownRequests(teamId, nowUs, after = '') {
      return db
        .prepare(
          `select key_hash, body_hash, first_seq, count, rejected, expires_at_us from idempotency
           where team_no = ${teamNo} and expires_at_us > ? and key_hash > ?
           order by key_hash limit ${limits.moveRowsMax}`,
        )
        .all(teamId, nowUs, after)
        .map(requestFromRow);
    },

    async keysWithHashes() {
      return db
        .prepare(`${selectKey} order by k.created_at_us, k.id`)
        .all()
        .map((row) => ({ ...keyFromRow(row), hash: row['hash'] as string }));
    },

    async takeTeam({ id, name, createdAtUs }) {
      inTransaction(db, () => {
        const found = db.prepare('select id, name from teams where id = ? or name = ?');
        for (const row of found.all(id, name)) {
          if (row['id'] !== id) throw nameIsTaken(name);
          return;
        }
        db.prepare('insert into teams (id, name, created_at_us) values (?, ?, ?)').run(
          id,
          name,
          createdAtUs,
        );
      });
    },

    async takeTraces(teamId, traces) {
      const [first, last] = [traces[0], traces.at(-1)];
      if (!first || !last) return { kind: 'taken' };
      return inTransaction(db, () => {
        const { addTrace, addRollups, moveCounter } = books();
        const { teamNo: no, firstSeq, lastSeq } = books().counter(teamId);
        const isEmpty = lastSeq < firstSeq;
        if (!isEmpty && first.seq !== lastSeq + 1) return { kind: 'elsewhere', lastSeq };
        const rollups = new RollupBatch();
        for (const trace of traces) {
          const { seq, id, createdAtUs } = trace;
          addTrace(no, seq, uuidBytes(id), createdAtUs, trace, trace);
          rollups.add(trace, createdAtUs);
        }
        addRollups(no, rollups);
        moveCounter({
          teamNo: no,
          firstSeq: isEmpty ? first.seq : firstSeq,
          lastSeq: last.seq,
          lastUs: last.createdAtUs,
        });
        return { kind: 'taken' };
      });
    },

    async takeRequests(teamId, requests) {
      inTransaction(db, () => {
        const insert = db.prepare(`
          insert or replace into idempotency (team_no, key_hash, body_hash, first_seq, count, rejected, expires_at_us)
          values (${teamNo}, ?, ?, ?, ?, ?, ?)`);
        for (const { keyHash, bodyHash, firstSeq, count, rejected, expiresAtUs } of requests) {
          insert.run(teamId, keyHash, bodyHash, firstSeq, count, rejected, expiresAtUs);
        }
      });
    },

    async takeKeys(keys) {
      inTransaction(db, () => {
        for (const key of keys) takeKey(db, key);
      });
    },
  };
}

function takeKey(db: DatabaseSync, key: MovedKey): void {
  db.prepare(`
    insert into api_keys (id, team_no, hash, prefix, name, scope, created_at_us, expires_at_us, revoked_at_us, replaced_by)
    values (?, (select no from teams where id = ?), ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do update set expires_at_us = excluded.expires_at_us, revoked_at_us = coalesce(excluded.revoked_at_us, api_keys.revoked_at_us),
      replaced_by = excluded.replaced_by`).run(
    key.id,
    key.teamId,
    key.hash,
    key.prefix,
    key.name,
    key.scope,
    key.createdAtUs,
    key.expiresAtUs,
    key.revokedAtUs,
    key.replacedBy,
  );
  if (key.lastUsedAtUs === null) return;
  db.prepare(noteKeyUse).run(key.id, key.lastUsedAtUs);
}

function requestFromRow(row: Row): MovedRequest {
  return {
    keyHash: row['key_hash'] as string,
    bodyHash: row['body_hash'] as string,
    rejected: row['rejected'] as string | null,
    firstSeq: row['first_seq'] as number,
    count: row['count'] as number,
    expiresAtUs: row['expires_at_us'] as number,
  };
}
