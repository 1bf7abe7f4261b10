import { hashKey, isWellFormedKey } from '../core/api-key.ts';
import type { Permission, Scope } from '../core/api-key.ts';
import type { Clock } from '../core/clock.ts';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { KeyDirectory } from '../store/teams-and-keys.ts';

/** The authenticated caller of a request. */
export interface Caller {
  keyId: string;
  teamId: string;
  scope: Scope;
  expiresAtUs: number | null;
}

/** The API key from the environment. Only its hash is kept, in memory. */
export interface EnvKey {
  hash: string;
  teamId: string;
  teamName: string;
}

export interface Authenticator {
  /** Finds the caller of an Authorization header, or fails with 401. A cached caller is returned without a promise. */
  authenticate(header: string | undefined): Caller | Promise<Caller>;
}

export function openAuthenticator(
  directory: Pick<KeyDirectory, 'findKeyByHash' | 'noteKeyUse'>,
  clock: Clock,
  envKey: EnvKey | null,
): Authenticator {
  const cache = openCallerCache<Caller>();
  const noteUse = openUseNotes(directory, clock);

  async function lookUp(header: string | undefined): Promise<Caller> {
    const key = keyOf(header);
    const hash = hashKey(key);
    if (envKey && hash === envKey.hash) {
      return { keyId: envKeyId, teamId: envKey.teamId, scope: 'full', expiresAtUs: null };
    }
    // A key with a wrong checksum cannot exist, so it is not looked up.
    const record = isWellFormedKey(key) ? await directory.findKeyByHash(hash) : null;
    if (!record) return fail('key_unknown');
    if (record.revokedAtUs !== null) return fail('key_revoked');
    const { id: keyId, teamId, scope, expiresAtUs } = record;
    return { keyId, teamId, scope, expiresAtUs };
  }

  return {
    authenticate(header) {
      const nowMs = performance.now();
      const known = cache.get(header, nowMs);
      return known ? admit(known, nowMs) : meet(header);
    },
  };

  async function meet(header: string | undefined): Promise<Caller> {
    const caller = await lookUp(header);
    const nowMs = performance.now();
    cache.set(header, caller, nowMs);
    return admit(caller, nowMs);
  }

  function admit(caller: Caller, nowMs: number): Caller {
    if (caller.expiresAtUs !== null && caller.expiresAtUs <= clock()) return fail('key_expired');
    if (caller.keyId !== envKeyId) noteUse(caller.keyId, nowMs);
    return caller;
  }
}

export function scopeMissing(scope: Scope, permission: Permission): never {
  return fail('scope_missing', {
    say: `This API key has the scope "${scope}"; this request needs "${permission}" or "full".`,
  });
}

/** The id of the environment's key in the log. */
export const envKeyId = 'environment';

function keyOf(header: string | undefined): string {
  if (header === undefined) return fail('key_missing');
  const key = /^bearer {1,8}([\x21-\x7e]+)$/i.exec(header)?.[1];
  return key ?? fail('key_missing');
}

/**
 * Callers by the raw header or session cookie that they sent. Entries are short-lived, so that a revocation takes effect within a
 * second in every process. Their age is measured by a monotonic clock, so that a jump of the wall clock cannot keep a key valid.
 */
export function openCallerCache<C extends Caller>() {
  const entries = new Map<string, { caller: C; untilMs: number }>();
  return {
    get(header: string | undefined, nowMs: number): C | null {
      const entry = header === undefined ? undefined : entries.get(header);
      return entry && entry.untilMs > nowMs ? entry.caller : null;
    },
    set(header: string | undefined, caller: C, nowMs: number): void {
      if (header === undefined) return;
      if (entries.size >= limits.keyCacheEntriesMax) entries.clear();
      entries.set(header, { caller, untilMs: nowMs + limits.keyCacheTtlMs });
    },
  };
}

/** Records the use of a key at most once per minute. */
export function openUseNotes(directory: Pick<KeyDirectory, 'noteKeyUse'>, clock: Clock) {
  const notedMs = new Map<string, number>();
  return (keyId: string, nowMs: number): void => {
    const last = notedMs.get(keyId);
    if (last !== undefined && nowMs - last < limits.keyUseIntervalMs) return;
    if (notedMs.size >= limits.keyCacheEntriesMax) notedMs.clear();
    notedMs.set(keyId, nowMs);
    directory.noteKeyUse(keyId, clock());
  };
}
