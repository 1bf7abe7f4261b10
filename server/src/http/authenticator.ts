import { allows, hashKey, isWellFormedKey } from '../core/api-key.ts';
import type { Permission, Scope } from '../core/api-key.ts';
import type { Clock } from '../core/clock.ts';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { HashedKey, KeyAccess, KeyDirectory } from '../store/teams-and-keys.ts';
import { openCallerCache } from './caller-cache.ts';
import type { CacheLookups } from './caller-cache.ts';

/** The authenticated caller of a request. */
export interface Caller {
  keyId: string;
  teamId: string;
  scope: Scope;
  expiresAtUs: number | null;
}

/** What is known of a key while the server runs. */
export type KeyInUse = KeyAccess & Pick<HashedKey, 'hash' | 'teamName'>;

/** The id of the environment's key, which is not in the store. Only its hash is kept, in memory. */
export const envKeyId = 'environment';

export interface Authenticator {
  /** Finds the caller of an Authorization header, or fails with 401. A cached caller is returned without a promise. */
  authenticate(header: string | undefined): Caller | Promise<Caller>;
}

export function openAuthenticator(
  directory: Pick<KeyDirectory, 'findKeyByHash' | 'noteKeyUse'>,
  clock: Clock,
  envKey: KeyInUse | null,
  lookups: CacheLookups = { hit: 0, miss: 0 },
): Authenticator {
  const find = openCallerCache(lookUp, lookups);
  const noteUse = openUseNotes(directory, clock);

  async function lookUp(header: string): Promise<Caller> {
    const key = /^bearer {1,8}([\x21-\x7e]+)$/i.exec(header)?.[1] ?? fail('key_missing');
    const hash = hashKey(key);
    const isEnvKey = hash === envKey?.hash;
    // A key with a wrong checksum cannot exist, so it is not looked up.
    if (!isEnvKey && !isWellFormedKey(key)) return fail('key_unknown');
    const record = isEnvKey ? envKey : await directory.findKeyByHash(hash);
    if (!record) return fail('key_unknown');
    if (record.revokedAtUs !== null) return fail('key_revoked');
    const { id: keyId, teamId, scope, expiresAtUs } = record;
    return { keyId, teamId, scope, expiresAtUs };
  }

  function admit(caller: Caller, nowMs: number): Caller {
    refuseExpired(caller, clock);
    noteUse(caller.keyId, nowMs);
    return caller;
  }

  return {
    authenticate: (header) => (header === undefined ? fail('key_missing') : find(header, admit)),
  };
}

/** Most keys do not expire, and then the time is not asked for. */
export function refuseExpired({ expiresAtUs }: Pick<Caller, 'expiresAtUs'>, clock: Clock): void {
  if (expiresAtUs !== null && expiresAtUs <= clock()) fail('key_expired');
}

export function requireScope({ scope }: Pick<Caller, 'scope'>, permission: Permission): void {
  if (allows(scope, permission)) return;
  fail('scope_missing', {
    say: `This API key has the scope "${scope}"; this request needs "${permission}" or "full".`,
  });
}

/** Records the use of a stored key at most once per minute. */
export function openUseNotes(directory: Pick<KeyDirectory, 'noteKeyUse'>, clock: Clock) {
  const notedMs = new Map<string, number>();
  return (keyId: string, nowMs: number): void => {
    const last = notedMs.get(keyId);
    if (last !== undefined && nowMs - last < limits.keyUseIntervalMs) return;
    if (notedMs.size >= limits.keyCacheEntriesMax) notedMs.clear();
    notedMs.set(keyId, nowMs);
    if (keyId !== envKeyId) directory.noteKeyUse(keyId, clock());
  };
}
