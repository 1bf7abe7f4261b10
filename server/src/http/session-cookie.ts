import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** The contents of a session cookie. */
export interface Session {
  /** The API key that started the session. */
  keyId: string;
  endsAtUs: number;
  /** Random. Without it, sessions of one key that end at the same time would be signed out together. */
  id: string;
  /** Distinguishes the API key from another one with the same id, such as a changed `TRACETALLY_API_KEY`. */
  keyMark: string;
}

/** Cookies ignore ports, so two installations on one host need different cookie names. */
export function sessionCookieName(secret: Uint8Array): string {
  return `tracetally-${hmac(secret, 'cookie name').slice(0, 12)}`;
}

/** The cookie includes a mark derived from the API key's hash, so that it is never valid for another key. */
export function sealSession(
  { id, hash }: { id: string; hash: string },
  endsAtUs: number,
  secret: Uint8Array,
): string {
  const unique = randomBytes(idBytes).toString('base64url');
  const text = `${id}.${endsAtUs}.${unique}.${keyMark(hash, secret)}`;
  return `${text}.${sealOf(text, secret)}`;
}

const idBytes = 16;

const valuePattern =
  /^(([A-Za-z0-9_]{1,64})\.([0-9]{1,16})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43}))\.([A-Za-z0-9_-]{43})$/;

/** The session of a cookie that this installation has signed; null for any other. Forged cookies are rejected without a lookup. */
export function openSession(value: string, secret: Uint8Array): Session | null {
  const [, text = '', keyId = '', endsAtUs, id = '', mark = '', seal = ''] =
    valuePattern.exec(value) ?? [];
  if (!isSame(seal, sealOf(text, secret))) return null;
  return { keyId, endsAtUs: Number(endsAtUs), id, keyMark: mark };
}

export function isOfKey(session: Session, keyHash: string, secret: Uint8Array): boolean {
  return isSame(session.keyMark, keyMark(keyHash, secret));
}

function isSame(given: string, expected: string): boolean {
  return (
    given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected))
  );
}

/** The value of a cookie in a `Cookie` header. If several have the same name, browsers send the most specific path first. */
export function cookieValue(header: string | undefined, name: string): string | null {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const pair = pairs.find((candidate) => candidate.startsWith(`${name}=`));
  return pair === undefined ? null : pair.slice(name.length + 1);
}

function sealOf(text: string, secret: Uint8Array): string {
  return hmac(secret, `session\n${text}`);
}

function keyMark(keyHash: string, secret: Uint8Array): string {
  return hmac(secret, `key\n${keyHash}`);
}

function hmac(secret: Uint8Array, text: string): string {
  return createHmac('sha256', secret).update(text).digest('base64url');
}
