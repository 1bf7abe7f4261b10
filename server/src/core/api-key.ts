import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { limits } from '../limits.ts';

export const scopes = ['ingest', 'read', 'full'] as const;
export type Scope = (typeof scopes)[number];

/** What an endpoint requires. */
export type Permission = 'ingest' | 'read';

export function allows(scope: Scope, permission: Permission): boolean {
  return scope === 'full' || scope === permission;
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secretChars = 30;
const checksumChars = 6;
const keyPattern = /^tt_[0-9A-Za-z]{36}$/;
const envKeyPattern = new RegExp(
  `^[\\x21-\\x7e]{${limits.envKeyCharsMin},${limits.envKeyCharsMax}}$`,
);
const prefixChars = 'tt_'.length + 6;

/**
 * `tt_`, 30 random base62 characters (178 bits), and a 6-character checksum. The checksum rejects mistyped keys without a lookup
 * and lets secret scanners recognize leaked ones.
 */
export function generateKey(): string {
  const secret = randomText(secretChars);
  return `tt_${secret}${checksum(secret)}`;
}

/** Identifies a key when it is rotated or revoked. It is not a secret. */
export function generateKeyId(): string {
  return `key_${randomText(10)}`;
}

function randomText(chars: number): string {
  let text = '';
  for (let i = 0; i < chars; i++) text += alphabet[randomInt(alphabet.length)];
  return text;
}

export function isWellFormedKey(text: string): boolean {
  if (!keyPattern.test(text)) return false;
  return checksum(text.slice(3, 3 + secretChars)) === text.slice(3 + secretChars);
}

/** Only the hash is stored. A key is long and random, so a fast hash without a salt is enough. */
export function hashKey(key: string): string {
  return hash('sha256', key);
}

/** Shown in lists so that keys can be told apart; too short to be useful to an attacker. */
export function keyPrefix(key: string): string {
  return key.slice(0, prefixChars);
}

/** The operator chooses the environment's key, so it needs only visible characters and no checksum. */
export function isAcceptableEnvKey(text: string): boolean {
  return envKeyPattern.test(text);
}

function checksum(secret: string): string {
  let rest = crc32(secret);
  let text = '';
  for (let i = 0; i < checksumChars; i++) {
    text = `${alphabet[rest % alphabet.length]}${text}`;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}
