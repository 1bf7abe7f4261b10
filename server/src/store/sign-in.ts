import { randomBytes } from 'node:crypto';
import { generateSignInCode, hashSignInCode } from '../core/sign-in-code.ts';
import { limits } from '../limits.ts';

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

/** The row of `server_secrets` that signs session cookies. */
export const sessionSecretName = 'session';

const secretBytes = 32;

/** Up to which end sessions are removed: a whole session life ago, since another server's clock may be behind and still accept them. */
export function removableEndUs(nowUs: number): number {
  return nowUs - limits.sessionLifeMs * 1000;
}

export function makeSessionSecret(): Uint8Array {
  return randomBytes(secretBytes);
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
