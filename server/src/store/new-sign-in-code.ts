import { generateSignInCode, hashSignInCode } from '../core/sign-in-code.ts';
import { limits } from '../limits.ts';
import type { NewSignInCode } from './store.ts';

/** A fresh one-time code: the text, to be shown once, and the part of it that may be stored. */
export function makeSignInCode(
  keyId: string,
  nowUs: number,
): { code: string; record: NewSignInCode } {
  const code = generateSignInCode();
  const expiresAtUs = nowUs + limits.signInCodeLifeMs * 1000;
  return { code, record: { hash: hashSignInCode(code), keyId, expiresAtUs } };
}
