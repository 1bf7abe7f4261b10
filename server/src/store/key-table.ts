import type { Scope } from '../core/api-key.ts';
import { limits } from '../limits.ts';
import { numberOrNull, statement, write } from './sql.ts';
import type { Row, Sql, Steps } from './sql.ts';
import type { HashedKey, KeyAccess, KeyDirectory, NewKey } from './teams-and-keys.ts';
import type { Transfer } from './transfer.ts';

const selectKey = `
  select k.id, k.hash, k.prefix, k.name, k.scope, k.created_at_us, k.expires_at_us, k.revoked_at_us, k.replaced_by,
    k.team_id, t.name as team_name, u.last_used_at_us
  from api_keys k join teams t on t.id = k.team_id left join key_uses u on u.key_id = k.id`;
const inOrder = 'order by k.created_at_us, k.id';

/** Keys are read to authenticate requests, and written mostly by commands. */
export function openKeys(sql: Sql): Omit<KeyDirectory, 'noteKeyUse'> & Pick<Transfer, 'takeKeys'> {
  return {
    async createKey(teamId, key) {
      await write(sql, insertKey, newKeyValues(teamId, key));
    },
    rotateKey: (oldKeyId, key, oldExpiresAtUs) =>
      sql.transaction(function* () {
        const [replaced] = (yield statement(
          `update api_keys set expires_at_us = ?2, replaced_by = ?3
           where id = ?1 and revoked_at_us is null and replaced_by is null returning team_id`,
          [oldKeyId, oldExpiresAtUs, key.id],
        )).rows;
        if (replaced) yield statement(insertKey, newKeyValues(replaced['team_id'] as string, key));
        return replaced !== undefined;
      }),
    async revokeKey(keyId, nowUs) {
      const revoke =
        'update api_keys set revoked_at_us = ?2 where id = ?1 and revoked_at_us is null';
      return (await write(sql, revoke, [keyId, nowUs])).changes === 1;
    },
    async findKey(keyId) {
      const [row] = await sql.all(`${selectKey} where k.id = ?1`, [keyId]);
      return row ? keyFromRow(row) : null;
    },
    findKeyByHash: openKeyFinder(sql),
    async keys(teamId) {
      const rows = await (teamId === null
        ? sql.all(`${selectKey} ${inOrder}`)
        : sql.all(`${selectKey} where k.team_id = ?1 ${inOrder}`, [teamId]));
      return rows.map(keyFromRow);
    },
    takeKeys: (keys) => sql.transaction(() => takeKeys(keys)),
  };
}

const insertKey = `
  insert into api_keys (id, team_id, hash, prefix, name, scope, created_at_us, expires_at_us)
  values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`;

function* takeKeys(keys: readonly HashedKey[]): Steps<void> {
  for (const key of keys) {
    yield statement(
      `insert into api_keys (id, team_id, hash, prefix, name, scope, created_at_us, expires_at_us, revoked_at_us, replaced_by)
       values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
       on conflict (id) do update set expires_at_us = excluded.expires_at_us, replaced_by = excluded.replaced_by,
         revoked_at_us = coalesce(excluded.revoked_at_us, api_keys.revoked_at_us)`,
      [...newKeyValues(key.teamId, key), key.revokedAtUs, key.replacedBy],
    );
  }
  yield* noteKeyUses(
    keys.flatMap(({ id, lastUsedAtUs: atUs }) => (atUs === null ? [] : { keyId: id, atUs })),
  );
}

/** When a key was last used. */
export interface KeyUse {
  keyId: string;
  atUs: number;
}

/** Records the uses of keys, each of them once. */
export function* noteKeyUses(uses: readonly KeyUse[]): Steps<void> {
  for (let at = 0; at < uses.length; at += limits.moveRowsMax) {
    const some = uses.slice(at, at + limits.moveRowsMax);
    yield {
      text: noteUses(some.length),
      values: some.flatMap(({ keyId, atUs }) => [keyId, atUs]),
      isUnprepared: true,
    };
  }
}

/** Takes the ids and times of as many uses in turns. A later use stays. */
function noteUses(count: number): string {
  const rows = Array.from({ length: count }, (_, i) => `(?${2 * i + 1}, ?${2 * i + 2})`);
  return `
    insert into key_uses (key_id, last_used_at_us) values ${rows.join(', ')}
    on conflict (key_id) do update set last_used_at_us = excluded.last_used_at_us
    where excluded.last_used_at_us > key_uses.last_used_at_us`;
}

/** Looks up keys by hash, with one query for all lookups of the same event-loop turn. */
function openKeyFinder(sql: Sql): (hash: string) => Promise<KeyAccess | null> {
  const read = `
    select id, hash, team_id, scope, expires_at_us, revoked_at_us from api_keys where ${sql.isAmong('hash', '?1')}`;
  let asked = new Map<string, Promise<KeyAccess | null>>();
  let answers: Promise<ReadonlyMap<string, KeyAccess>> | null = null;

  async function lookUp(): Promise<ReadonlyMap<string, KeyAccess>> {
    await new Promise((resolve) => setImmediate(resolve));
    const hashes = [...asked.keys()];
    asked = new Map();
    answers = null;
    const rows = await sql.all(read, [hashes]);
    return new Map(rows.map((row) => [row['hash'] as string, accessFromRow(row)]));
  }

  return (hash) => {
    answers ??= lookUp();
    const known = asked.get(hash);
    if (known) return known;
    const answer = answers.then((found) => found.get(hash) ?? null);
    asked.set(hash, answer);
    return answer;
  };
}

function accessFromRow(row: Row): KeyAccess {
  return {
    id: row['id'] as string,
    teamId: row['team_id'] as string,
    scope: row['scope'] as Scope,
    expiresAtUs: numberOrNull(row['expires_at_us']),
    revokedAtUs: numberOrNull(row['revoked_at_us']),
  };
}

function keyFromRow(row: Row): HashedKey {
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

function newKeyValues(teamId: string, key: NewKey) {
  const { id, hash, prefix, name, scope, createdAtUs, expiresAtUs } = key;
  return [id, teamId, hash, prefix, name, scope, createdAtUs, expiresAtUs];
}
