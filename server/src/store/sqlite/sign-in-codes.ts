import type { DatabaseSync } from 'node:sqlite';
import { makeSessionSecret, removableEndUs, sessionSecretName } from '../sign-in.ts';
import type { SignInDirectory } from '../sign-in.ts';
import { inTransaction, retryWhileBusy } from './connection.ts';

/** The tables of dashboard sessions. They belong to one installation, so backups and copies do not include them. */
export const sessionTables = ['server_secrets', 'sign_in_codes', 'ended_sessions'] as const;

export function openSignInCodes(db: DatabaseSync): SignInDirectory {
  const readSecret = db.prepare('select value from server_secrets where name = ?');
  const addSecret = db.prepare(
    'insert into server_secrets (name, value) values (?, ?) on conflict do nothing',
  );
  const addCode = db.prepare(
    'insert into sign_in_codes (code_hash, key_id, expires_at_us) values (?, ?, ?)',
  );
  const removeExpired = db.prepare('delete from sign_in_codes where expires_at_us <= ?');
  const findCode = db.prepare(
    'select key_id from sign_in_codes where code_hash = ? and expires_at_us > ?',
  );
  const takeCode = db.prepare(
    'delete from sign_in_codes where code_hash = ? and expires_at_us > ? returning key_id',
  );
  const removeEnded = db.prepare('delete from ended_sessions where ends_at_us <= ?');
  const addEnded = db.prepare(
    'insert into ended_sessions (ends_at_us, id) values (?, ?) on conflict do nothing',
  );
  const findEnded = db.prepare('select 1 from ended_sessions where ends_at_us = ? and id = ?');

  const secretNow = () => readSecret.get(sessionSecretName)?.['value'] as Uint8Array | undefined;

  return {
    async sessionSecret() {
      const known = secretNow();
      if (known) return known;
      inTransaction(db, () => addSecret.run(sessionSecretName, makeSessionSecret()));
      const created = secretNow();
      if (!created) throw new Error('the session secret was neither found nor created');
      return created;
    },
    async addSignInCode({ hash, keyId, expiresAtUs }, nowUs) {
      inTransaction(db, () => {
        removeExpired.run(nowUs);
        addCode.run(hash, keyId, expiresAtUs);
      });
    },
    async findSignInCode(hash, nowUs) {
      return keyIdOf(findCode.get(hash, nowUs));
    },
    takeSignInCode: (hash, nowUs) =>
      retryWhileBusy(db, () => keyIdOf(takeCode.all(hash, nowUs)[0])),
    endSession: ({ id, endsAtUs }, nowUs) =>
      retryWhileBusy(db, () => {
        removeEnded.run(removableEndUs(nowUs));
        addEnded.run(endsAtUs, id);
      }),
    async isSessionEnded({ id, endsAtUs }) {
      return findEnded.get(endsAtUs, id) !== undefined;
    },
  };
}

function keyIdOf(row: Record<string, unknown> | undefined): string | null {
  return (row?.['key_id'] ?? null) as string | null;
}
