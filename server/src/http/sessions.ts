import type { IncomingHttpHeaders } from 'node:http';
import { allows } from '../core/api-key.ts';
import type { Permission } from '../core/api-key.ts';
import type { Clock } from '../core/clock.ts';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { HashedKey, KeyDirectory } from '../store/teams-and-keys.ts';
import { envKeyId, openCallerCache, openUseNotes, scopeMissing } from './authenticator.ts';
import type { Caller, EnvKey } from './authenticator.ts';
import {
  cookieValue,
  isOfKey,
  openSession,
  sealSession,
  sessionCookieName,
} from './session-cookie.ts';

/**
 * The dashboard sends this header with every request; without it a session cookie is ignored. A page of another origin cannot send it:
 * the browser would send a CORS preflight first, which this server never approves. Its value is the id of the team that
 * the page shows, or `any`, so that a tab never mixes two teams after a sign-in in another tab.
 */
export const dashboardHeader = 'x-tracetally-dashboard';

const anyTeam = 'any';

/** A user who signed in to the dashboard. A session can only read, whatever the scope of its API key. */
export interface SessionCaller extends Caller {
  teamName: string;
  endsAtUs: number;
}

export interface StartedSession {
  caller: SessionCaller;
  cookie: string;
}

export interface Sessions {
  readonly cookieName: string;
  /** Finds the caller of a session cookie, or fails with 401 or 403. A cached session is returned without a promise. */
  authenticate(
    headers: IncomingHttpHeaders,
    permission: Permission,
  ): SessionCaller | Promise<SessionCaller>;
  /** Starts a session for an API key that is active and may read; fails with 401 or 403 otherwise. */
  start(keyId: string): Promise<StartedSession>;
}

export interface SessionsOptions {
  directory: Pick<KeyDirectory, 'findKey' | 'noteKeyUse'>;
  clock: Clock;
  envKey: EnvKey | null;
  secret: Uint8Array;
}

type BoundKey = Pick<
  HashedKey,
  'id' | 'hash' | 'teamId' | 'teamName' | 'scope' | 'expiresAtUs' | 'revokedAtUs'
>;

export function openSessions({ directory, clock, envKey, secret }: SessionsOptions): Sessions {
  const cookieName = sessionCookieName(secret);
  const cache = openCallerCache<SessionCaller>();
  const noteUse = openUseNotes(directory, clock);

  async function findKey(keyId: string): Promise<BoundKey | null> {
    if (keyId !== envKeyId) return directory.findKey(keyId);
    if (envKey === null) return null;
    return { ...envKey, id: envKeyId, scope: 'full', expiresAtUs: null, revokedAtUs: null };
  }

  async function lookUp(cookie: string): Promise<SessionCaller> {
    const session = openSession(cookie, secret);
    if (session === null) return fail('not_signed_in');
    const key = await findKey(session.keyId);
    if (key === null || !isOfKey(session, key.hash, secret)) return fail('not_signed_in');
    if (key.revokedAtUs !== null) return fail('key_revoked');
    return callerOf(key, session.endsAtUs);
  }

  function admit(caller: SessionCaller, { [dashboardHeader]: team }: IncomingHttpHeaders) {
    const nowUs = clock();
    if (caller.expiresAtUs !== null && caller.expiresAtUs <= nowUs) return fail('key_expired');
    if (caller.endsAtUs <= nowUs) return fail('not_signed_in');
    if (team !== anyTeam && team !== caller.teamId) return fail('not_signed_in');
    if (caller.keyId !== envKeyId) noteUse(caller.keyId, performance.now());
    return caller;
  }

  async function meet(cookie: string, headers: IncomingHttpHeaders): Promise<SessionCaller> {
    const caller = await lookUp(cookie);
    cache.set(cookie, caller, performance.now());
    return admit(caller, headers);
  }

  return {
    cookieName,
    authenticate(headers, permission) {
      if (permission !== 'read') {
        return fail('scope_missing', {
          say: 'A dashboard session can only read. Use an API key to record traces.',
        });
      }
      const cookie = cookieValue(headers.cookie, cookieName);
      if (cookie === null) return fail('not_signed_in');
      const known = cache.get(cookie, performance.now());
      return known ? admit(known, headers) : meet(cookie, headers);
    },
    async start(keyId) {
      const key = await findKey(keyId);
      const nowUs = clock();
      if (key === null) return fail('key_unknown');
      if (key.revokedAtUs !== null) return fail('key_revoked');
      if (key.expiresAtUs !== null && key.expiresAtUs <= nowUs) return fail('key_expired');
      if (!allows(key.scope, 'read')) return scopeMissing(key.scope, 'read');
      const endsAtUs = Math.min(nowUs + limits.sessionLifeMs * 1000, key.expiresAtUs ?? Infinity);
      return {
        caller: callerOf(key, endsAtUs),
        cookie: sealSession({ keyId, endsAtUs }, key.hash, secret),
      };
    },
  };
}

function callerOf(
  { id, teamId, teamName, expiresAtUs }: BoundKey,
  endsAtUs: number,
): SessionCaller {
  return { keyId: id, teamId, teamName, scope: 'read', expiresAtUs, endsAtUs };
}

export function isFromDashboard(headers: IncomingHttpHeaders): boolean {
  return headers[dashboardHeader] !== undefined;
}
