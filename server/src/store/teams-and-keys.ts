import { generateKey, generateKeyId, hashKey, keyPrefix } from '../core/api-key.ts';
import type { Scope } from '../core/api-key.ts';

export interface Team {
  id: string;
  name: string;
  createdAtUs: number;
}

export interface TeamSummary extends Team {
  traces: number;
  liveKeys: number;
}

/** The record of a new API key. The key itself is never stored. */
export interface NewKey {
  id: string;
  hash: string;
  prefix: string;
  name: string | null;
  scope: Scope;
  createdAtUs: number;
  expiresAtUs: number | null;
}

/** The parts of a key that decide what its callers may do. */
export interface KeyAccess extends Pick<NewKey, 'id' | 'scope' | 'expiresAtUs'> {
  teamId: string;
  revokedAtUs: number | null;
}

export interface KeyRecord extends KeyAccess, Omit<NewKey, 'hash'> {
  teamName: string;
  /** The id of the key that replaced this one in a rotation. */
  replacedBy: string | null;
  lastUsedAtUs: number | null;
}

/** An API key with its hash. */
export interface HashedKey extends KeyRecord {
  hash: string;
}

export interface TeamDirectory {
  /** The team of this name, created if there is none. A new team has this time zone, or UTC. */
  ensureTeam(
    name: string,
    nowUs: number,
    timeZone?: string,
  ): Promise<{ team: Team; created: boolean }>;
  findTeam(nameOrId: string): Promise<Team | null>;
  teams(nowUs: number): Promise<readonly TeamSummary[]>;
}

export interface KeyDirectory {
  createKey(teamId: string, key: NewKey): Promise<void>;
  /** Adds the new key and makes the old one expire at `oldExpiresAtUs`, both or neither. False if the old one was revoked or replaced. */
  rotateKey(oldKeyId: string, key: NewKey, oldExpiresAtUs: number): Promise<boolean>;
  /** False if the key does not exist or was already revoked. */
  revokeKey(keyId: string, nowUs: number): Promise<boolean>;
  findKey(keyId: string): Promise<HashedKey | null>;
  /** Asked often: about twice a second for each key in use. */
  findKeyByHash(hash: string): Promise<KeyAccess | null>;
  keys(teamId: string | null): Promise<readonly HashedKey[]>;
  /** Records a use soon. Best effort; not awaited. */
  noteKeyUse(keyId: string, atUs: number): void;
}

/** The options of a new key. */
export interface KeyWishes {
  name: string | null;
  scope: Scope;
  nowUs: number;
  expiresAtUs: number | null;
}

/** Creates a key: the text, to be shown once, and the record to store. */
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
