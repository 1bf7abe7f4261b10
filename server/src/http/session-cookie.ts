import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a session cookie says: whose API key started the session, and when it ends. */
export interface SessionClaims {
  keyId: string;
  endsAtUs: number;
}

export interface SealedSession extends SessionClaims {
  /** The HMAC over the claims and the hash of the API key. */
  seal: string;
}

/** Cookies ignore ports, so two installations on one host need different names. */
export function sessionCookieName(secret: Uint8Array): string {
  return `tracetally-${hmac(secret, 'cookie name').slice(0, 12)}`;
}

/** With the hash of the API key in the seal, a cookie can never be valid for another key. */
export function sealSession(claims: SessionClaims, keyHash: string, secret: Uint8Array): string {
  return `${claims.keyId}.${claims.endsAtUs}.${sealOf(claims, keyHash, secret)}`;
}

const valuePattern = /^([A-Za-z0-9_]{1,64})\.([0-9]{1,16})\.([A-Za-z0-9_-]{43})$/;

/** Reads the form of a cookie only. Nothing in it may be believed before `isGenuine`. */
export function parseSession(value: string): SealedSession | null {
  const [, keyId, endsAtUs, seal] = valuePattern.exec(value) ?? [];
  if (keyId === undefined || endsAtUs === undefined || seal === undefined) return null;
  return { keyId, endsAtUs: Number(endsAtUs), seal };
}

export function isGenuine(session: SealedSession, keyHash: string, secret: Uint8Array): boolean {
  const expected = Buffer.from(sealOf(session, keyHash, secret));
  const given = Buffer.from(session.seal);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The value of a cookie in a `Cookie` header. Of several with one name, browsers send the most specific path first. */
export function cookieValue(header: string | undefined, name: string): string | null {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const pair = pairs.find((candidate) => candidate.startsWith(`${name}=`));
  return pair === undefined ? null : pair.slice(name.length + 1);
}

export interface CookieOptions {
  name: string;
  value: string;
  path: string;
  maxAgeS: number;
  /** For connections over TLS: the browser then never sends the cookie without it. */
  isSecure: boolean;
}

export function setCookieHeader({ name, value, path, maxAgeS, isSecure }: CookieOptions): string {
  const secure = isSecure ? '; Secure' : '';
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`;
}

function sealOf({ keyId, endsAtUs }: SessionClaims, keyHash: string, secret: Uint8Array): string {
  return hmac(secret, `session\n${keyId}\n${endsAtUs}\n${keyHash}`);
}

function hmac(secret: Uint8Array, text: string): string {
  return createHmac('sha256', secret).update(text).digest('base64url');
}
