import { generateKey, generateKeyId, hashKey, keyPrefix } from '../core/api-key.ts';
import type { Scope } from '../core/api-key.ts';
import type { NewKey } from './store.ts';

export interface KeyWishes {
  name: string | null;
  scope: Scope;
  nowUs: number;
  expiresAtUs: number | null;
}

/** A fresh key: the text, to be shown once, and what of it may be stored. */
export function makeKey({ name, scope, nowUs, expiresAtUs }: KeyWishes): {
  key: string;
  record: NewKey;
} {
  const key = generateKey();
  return {
    key,
    record: {
      id: generateKeyId(),
      hash: hashKey(key),
      prefix: keyPrefix(key),
      name,
      scope,
      createdAtUs: nowUs,
      expiresAtUs,
    },
  };
}
