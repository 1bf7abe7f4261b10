import { randomBytes } from 'node:crypto';
import { generateSignInCode, hashSignInCode } from '../core/sign-in-code.ts';
import { limits } from '../limits.ts';
import { statement, write } from './sql.ts';
import type { Row, Sql } from './sql.ts';

export interface NewSignInCode {
  /** The code itself is never stored. */
  hash: string;
  keyId: string;
  expiresAtUs: number;
}

export interface SignedOutSession {
  id: string;
  /** When it would have ended anyway. */
  endsAtUs: number;
}

export interface SignInDirectory {
  /** 32 random bytes that sign session cookies: created on first use, then the same for every process on this store. */
  sessionSecret(): Promise<Uint8Array>;
  /** Also removes codes that have expired. */
  addSignInCode(code: NewSignInCode, nowUs: number): Promise<void>;
  /** The id of the code's API key, or null if the code is unknown, used or expired. The code stays valid. */
  findSignInCode(hash: string, nowUs: number): Promise<string | null>;
  /** The same, but uses up the code: if several callers try at once, only one gets the id. */
  takeSignInCode(hash: string, nowUs: number): Promise<string | null>;
  /** Refuses the session from now on in every process. Also removes sessions that were over long ago. Can be repeated. */
  endSession(session: SignedOutSession, nowUs: number): Promise<void>;
  isSessionEnded(session: SignedOutSession): Promise<boolean>;
}

/** Creates a one-time code: the text, to be shown once, and the record to store. */
export function makeSignInCode(
  keyId: string,
  nowUs: number,
): { code: string; record: NewSignInCode } {
  const code = generateSignInCode();
  const expiresAtUs = nowUs + limits.signInCodeLifeMs * 1000;
  return { code, record: { hash: hashSignInCode(code), keyId, expiresAtUs } };
}

/** The tables of dashboard sessions. They belong to one installation, so backups and copies do not include them. */
export const sessionTables = ['server_secrets', 'sign_in_codes', 'ended_sessions'] as const;

/** The row of `server_secrets` that signs session cookies. */
const secretName = 'session';
const secretBytes = 32;

export function openSignIn(sql: Sql): SignInDirectory {
  async function readSecret(): Promise<Uint8Array | undefined> {
    const [row] = await sql.all('select value from server_secrets where name = ?1', [secretName]);
    return row?.['value'] as Uint8Array | undefined;
  }

  return {
    async sessionSecret() {
      const known = await readSecret();
      if (known) return known;
      // If several servers start at once, the first insert wins, and all read the same value back.
      const insert =
        'insert into server_secrets (name, value) values (?1, ?2) on conflict do nothing';
      await write(sql, insert, [secretName, randomBytes(secretBytes)]);
      const created = await readSecret();
      if (!created) throw new Error('the session secret was neither found nor created');
      return created;
    },
    addSignInCode: ({ hash, keyId, expiresAtUs }, nowUs) =>
      sql.transaction(function* () {
        yield statement('delete from sign_in_codes where expires_at_us <= ?1', [nowUs]);
        yield statement(
          'insert into sign_in_codes (code_hash, key_id, expires_at_us) values (?1, ?2, ?3)',
          [hash, keyId, expiresAtUs],
        );
      }),
    async findSignInCode(hash, nowUs) {
      const find = 'select key_id from sign_in_codes where code_hash = ?1 and expires_at_us > ?2';
      return keyIdOf(await sql.all(find, [hash, nowUs]));
    },
    async takeSignInCode(hash, nowUs) {
      const take =
        'delete from sign_in_codes where code_hash = ?1 and expires_at_us > ?2 returning key_id';
      return keyIdOf((await write(sql, take, [hash, nowUs])).rows);
    },
    endSession: ({ id, endsAtUs }, nowUs) =>
      sql.transaction(function* () {
        // Sessions stay for a whole session life: another server's clock may be behind and still accept their cookies.
        const overUs = nowUs - limits.sessionLifeMs * 1000;
        yield statement('delete from ended_sessions where ends_at_us <= ?1', [overUs]);
        yield statement(
          'insert into ended_sessions (ends_at_us, id) values (?1, ?2) on conflict do nothing',
          [endsAtUs, id],
        );
      }),
    async isSessionEnded({ id, endsAtUs }) {
      const find = 'select 1 from ended_sessions where ends_at_us = ?1 and id = ?2';
      return (await sql.all(find, [endsAtUs, id])).length > 0;
    },
  };
}

function keyIdOf([row]: readonly Row[]): string | null {
  return (row?.['key_id'] ?? null) as string | null;
}
