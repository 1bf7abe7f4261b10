import type { IncomingHttpHeaders } from 'node:http';
import type { Permission } from '../core/api-key.ts';
import type { Clock } from '../core/clock.ts';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { SignInDirectory } from '../store/sign-in.ts';
import type { KeyDirectory } from '../store/teams-and-keys.ts';
import { envKeyId, openUseNotes, refuseExpired, requireScope } from './authenticator.ts';
import type { Caller, KeyInUse } from './authenticator.ts';
import { openCallerCache } from './caller-cache.ts';
import type { CacheLookups } from './caller-cache.ts';
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

export interface Sessions {
  readonly cookieName: string;
  /** Finds the caller of a session cookie, or fails with 401 or 403. A cached session is returned without a promise. */
  authenticate(
    headers: IncomingHttpHeaders,
    permission: Permission,
  ): SessionCaller | Promise<SessionCaller>;
  /** Starts a session for an API key that is active and may read; fails with 401 or 403 otherwise. */
  start(keyId: string): Promise<{ caller: SessionCaller; cookie: string }>;
  /** Ends the session of the cookie on every server within a second. Does nothing if there is none, or if it has ended. */
  end(headers: IncomingHttpHeaders): Promise<void>;
}

export function openSessions(
  directory: Pick<KeyDirectory, 'findKey' | 'noteKeyUse'>,
  signIns: Pick<SignInDirectory, 'endSession' | 'isSessionEnded'>,
  clock: Clock,
  envKey: KeyInUse | null,
  secret: Uint8Array,
  lookups: CacheLookups = { hit: 0, miss: 0 },
): Sessions {
  const cookieName = sessionCookieName(secret);
  const find = openCallerCache(lookUp, lookups);
  const noteUse = openUseNotes(directory, clock);

  async function findKey(keyId: string): Promise<KeyInUse | null> {
    return keyId === envKeyId ? envKey : directory.findKey(keyId);
  }

  async function lookUp(cookie: string): Promise<SessionCaller> {
    const session = openSession(cookie, secret);
    if (session === null) return fail('not_signed_in');
    const [key, isEnded] = await Promise.all([
      findKey(session.keyId),
      signIns.isSessionEnded(session),
    ]);
    if (isEnded || key === null || !isOfKey(session, key.hash, secret)) {
      return fail('not_signed_in');
    }
    if (key.revokedAtUs !== null) return fail('key_revoked');
    return callerOf(key, session.endsAtUs);
  }

  return {
    cookieName,
    authenticate({ cookie: cookies, [dashboardHeader]: team }, permission) {
      if (permission !== 'read') {
        return fail('scope_missing', {
          say: 'A dashboard session can only read. Use an API key to record traces.',
        });
      }
      const cookie = cookieValue(cookies, cookieName) ?? fail('not_signed_in');
      return find(cookie, (caller, nowMs) => {
        const nowUs = clock();
        refuseExpired(caller, clock);
        if (caller.endsAtUs <= nowUs) return fail('not_signed_in');
        if (team !== anyTeam && team !== caller.teamId) return fail('not_signed_in');
        noteUse(caller.keyId, nowMs);
        return caller;
      });
    },
    async start(keyId) {
      const key = (await findKey(keyId)) ?? fail('key_unknown');
      const nowUs = clock();
      if (key.revokedAtUs !== null) return fail('key_revoked');
      refuseExpired(key, clock);
      requireScope(key, 'read');
      const endsAtUs = Math.min(nowUs + limits.sessionLifeMs * 1000, key.expiresAtUs ?? Infinity);
      return { caller: callerOf(key, endsAtUs), cookie: sealSession(key, endsAtUs, secret) };
    },
    async end({ cookie: cookies }) {
      const session = openSession(cookieValue(cookies, cookieName) ?? '', secret);
      const nowUs = clock();
      if (session === null || session.endsAtUs <= nowUs) return;
      // Asked first, so that a flood of sign-outs with one cookie does not write.
      if (await signIns.isSessionEnded(session)) return;
      await signIns.endSession(session, nowUs);
    },
  };
}

function callerOf(
  { id, teamId, teamName, expiresAtUs }: KeyInUse,
  endsAtUs: number,
): SessionCaller {
  return { keyId: id, teamId, teamName, scope: 'read', expiresAtUs, endsAtUs };
}

export function isFromDashboard(headers: IncomingHttpHeaders): boolean {
  return headers[dashboardHeader] !== undefined;
}
