import { hash, randomBytes } from 'node:crypto';

const randomByteCount = 16;
const codePattern = /^ttc_[A-Za-z0-9_-]{22}$/;

/** `ttc_` and 128 random bits. The prefix distinguishes a code from an API key, for people and for secret scanners. */
export function generateSignInCode(): string {
  return `ttc_${randomBytes(randomByteCount).toString('base64url')}`;
}

export function isWellFormedSignInCode(text: string): boolean {
  return codePattern.test(text);
}

/** Only the hash is stored. A code is long and random, so a fast hash without a salt is enough. */
export function hashSignInCode(code: string): string {
  return hash('sha256', code);
}
