import type { Scope } from '../core/api-key.ts';
import type { EarlierRequest } from './idempotency.ts';
import type { HashedKey, KeyAccess, NewKey, Team } from './teams-and-keys.ts';
import type { StoredRequest } from './transfer.ts';

/** Converts rows of the small tables to our types. The columns have the same names in every store. */
type Row = Readonly<Record<string, unknown>>;

export function teamFromRow(row: Row): Team {
  return {
    id: row['id'] as string,
    name: row['name'] as string,
    createdAtUs: Number(row['created_at_us']),
  };
}

export function accessFromRow(row: Row): KeyAccess {
  return {
    id: row['id'] as string,
    teamId: row['team_id'] as string,
    scope: row['scope'] as Scope,
    expiresAtUs: numberOrNull(row['expires_at_us']),
    revokedAtUs: numberOrNull(row['revoked_at_us']),
  };
}

export function keyFromRow(row: Row): HashedKey {
  return {
    ...accessFromRow(row),
    teamName: row['team_name'] as string,
    hash: row['hash'] as string,
    prefix: row['prefix'] as string,
    name: row['name'] as string | null,
    createdAtUs: Number(row['created_at_us']),
    replacedBy: row['replaced_by'] as string | null,
    lastUsedAtUs: numberOrNull(row['last_used_at_us']),
  };
}

/** The values of a new row of `api_keys`. */
export function newKeyValues(teamId: string, key: NewKey) {
  const { id, hash, prefix, name, scope, createdAtUs, expiresAtUs } = key;
  return [id, teamId, hash, prefix, name, scope, createdAtUs, expiresAtUs];
}

/** The same for a key that comes from another store. */
export function takenKeyValues(key: HashedKey) {
  return [...newKeyValues(key.teamId, key), key.revokedAtUs, key.replacedBy];
}

export function earlierFromRow(row: Row): EarlierRequest {
  return {
    bodyHash: row['body_hash'] as string,
    firstSeq: Number(row['first_seq']),
    count: Number(row['count']),
    rejected: row['rejected'] as string | null,
  };
}

export function requestFromRow(row: Row): StoredRequest {
  return {
    keyHash: row['key_hash'] as string,
    ...earlierFromRow(row),
    expiresAtUs: Number(row['expires_at_us']),
  };
}

function numberOrNull(value: unknown): number | null {
  return value === null ? null : Number(value);
}
