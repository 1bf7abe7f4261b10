import type { DatabaseSync } from 'node:sqlite';
import { uuidV7 } from '../../core/uuid.ts';
import {
  accessFromRow,
  keyFromRow,
  newKeyValues,
  takenKeyValues,
  teamFromRow,
} from '../key-rows.ts';
import type { HashedKey, KeyDirectory, NewKey, Team, TeamDirectory } from '../teams-and-keys.ts';
import { nameIsTaken } from '../transfer.ts';
import { defaultTimeZone } from '../team-marks.ts';
import { inTransaction } from './connection.ts';
import { insertFirstMarks } from './rollup-tables.ts';

const selectKey = `
  select k.id, k.hash, k.prefix, k.name, k.scope, k.created_at_us, k.expires_at_us, k.revoked_at_us, k.replaced_by,
    t.id as team_id, t.name as team_name, u.last_used_at_us
  from api_keys k join teams t on t.no = k.team_no left join key_uses u on u.key_id = k.id`;

export const noteKeyUse = `
  insert into key_uses (key_id, last_used_at_us) values (?, ?)
  on conflict do update set last_used_at_us = max(last_used_at_us, excluded.last_used_at_us)`;

/** The tables of teams and API keys: read to authenticate requests, written mostly by commands. */
export function openTeamsAndKeys(
  db: DatabaseSync,
): TeamDirectory & Omit<KeyDirectory, 'noteKeyUse'> {
  const readTeamByName = db.prepare('select id, name, created_at_us from teams where name = ?');
  const readTeamById = db.prepare('select id, name, created_at_us from teams where id = ?');
  const findKeyByHash = db.prepare(`
    select k.id, t.id as team_id, k.scope, k.expires_at_us, k.revoked_at_us
    from api_keys k join teams t on t.no = k.team_no where k.hash = ?`);
  const readKeyById = db.prepare(`${selectKey} where k.id = ?`);
  const readKeys = db.prepare(`${selectKey} order by k.created_at_us, k.id`);
  const readTeams = db.prepare(`
    select t.id, t.name, t.created_at_us, coalesce(c.last_seq - c.first_seq + 1, 0) as traces,
      (select count(*) from api_keys k where k.team_no = t.no and k.revoked_at_us is null
        and (k.expires_at_us is null or k.expires_at_us > ?)) as live_keys
    from teams t left join team_counters c on c.team_no = t.no order by t.name`);
  const insertKey = db.prepare(`
    insert into api_keys (id, team_no, hash, prefix, name, scope, created_at_us, expires_at_us)
    values (?, (select no from teams where id = ?), ?, ?, ?, ?, ?, ?)`);
  const replaceKey = db.prepare(
    `update api_keys set expires_at_us = ?, replaced_by = ?
     where id = ? and revoked_at_us is null and replaced_by is null`,
  );
  const revokeKey = db.prepare(
    'update api_keys set revoked_at_us = ? where id = ? and revoked_at_us is null',
  );

  function addKey(teamId: string, key: NewKey): void {
    insertKey.run(...newKeyValues(teamId, key));
  }

  function teamFrom(row: Record<string, unknown> | undefined): Team | null {
    return row ? teamFromRow(row) : null;
  }

  return {
    async ensureTeam(name, nowUs, timeZone) {
      return inTransaction(db, () => {
        const found = teamFrom(readTeamByName.get(name));
        if (found) return { team: found, created: false };
        const team = { id: uuidV7(nowUs), name, createdAtUs: nowUs };
        addTeam(db, team, timeZone);
        return { team, created: true };
      });
    },
    async findTeam(nameOrId) {
      return teamFrom(readTeamByName.get(nameOrId)) ?? teamFrom(readTeamById.get(nameOrId));
    },
    async teams(nowUs) {
      return readTeams.all(nowUs).map((row) => ({
        ...teamFromRow(row),
        traces: row['traces'] as number,
        liveKeys: row['live_keys'] as number,
      }));
    },
    async createKey(teamId, key) {
      inTransaction(db, () => addKey(teamId, key));
    },
    async rotateKey(oldKeyId, key, oldExpiresAtUs) {
      return inTransaction(db, () => {
        if (replaceKey.run(oldExpiresAtUs, key.id, oldKeyId).changes !== 1) return false;
        addKey(readKeyById.get(oldKeyId)?.['team_id'] as string, key);
        return true;
      });
    },
    async revokeKey(keyId, nowUs) {
      return inTransaction(db, () => revokeKey.run(nowUs, keyId).changes) === 1;
    },
    async findKey(keyId) {
      const row = readKeyById.get(keyId);
      return row ? keyFromRow(row) : null;
    },
    async findKeyByHash(hash) {
      const row = findKeyByHash.get(hash);
      return row ? accessFromRow(row) : null;
    },
    async keys(teamId) {
      const keys = readKeys.all().map(keyFromRow);
      return teamId === null ? keys : keys.filter((key) => key.teamId === teamId);
    },
  };
}

/** A team has marks from the beginning. */
function addTeam(db: DatabaseSync, { id, name, createdAtUs }: Team, timeZone?: string): void {
  const insert = db.prepare('insert into teams (id, name, created_at_us) values (?, ?, ?)');
  const { lastInsertRowid } = insert.run(id, name, createdAtUs);
  db.prepare(insertFirstMarks).run(lastInsertRowid, timeZone ?? defaultTimeZone);
}

export function takeTeam(db: DatabaseSync, team: Team, timeZone?: string): void {
  const { id, name } = team;
  const found = db.prepare('select id from teams where id = ? or name = ?').all(id, name);
  if (found.some((row) => row['id'] !== id)) throw nameIsTaken(name);
  if (found.length > 0) return;
  addTeam(db, team, timeZone);
}

export function takeKeys(db: DatabaseSync, keys: readonly HashedKey[]): void {
  const insert = db.prepare(`
    insert into api_keys (id, team_no, hash, prefix, name, scope, created_at_us, expires_at_us, revoked_at_us, replaced_by)
    values (?, (select no from teams where id = ?), ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (id) do update set expires_at_us = excluded.expires_at_us,
      revoked_at_us = coalesce(excluded.revoked_at_us, api_keys.revoked_at_us), replaced_by = excluded.replaced_by`);
  const noteUse = db.prepare(noteKeyUse);
  for (const key of keys) {
    insert.run(...takenKeyValues(key));
    if (key.lastUsedAtUs !== null) noteUse.run(key.id, key.lastUsedAtUs);
  }
}
