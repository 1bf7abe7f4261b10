import { allTime, dimensions, measureNames } from '../../core/rollup.ts';
import type { Dimension } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import { payloadNames } from '../../core/trace-fields.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import { shortColumns as narrowAndId, traceColumns as columnsOfTrace } from '../trace-rows.ts';
import type { PageRequest } from '../trace-reader.ts';
import { tracesInsert } from './trace-columns.ts';

/**
 * Every statement on the tables of the store. If a table is distributed by team, each reference to it is bound by `team_id = $1`, so that a
 * statement runs on one shard; a test reads all of them with PostgreSQL's own parser and checks that.
 */
const shortColumns = `seq, ${narrowAndId}`;
const traceColumns = `seq, ${columnsOfTrace}`;

const measureColumns = measureNames.join(', ');
const addedUp = measureNames.map((name) => `${name} = rollups.${name} + excluded.${name}`);
const measureArrays = measureNames.map((_, i) => `$${i + 5}::bigint[]`);

// --- Of one team ---

const replaceRequest = `
    on conflict (team_id, key_hash) do update set
      body_hash = excluded.body_hash, first_seq = excluded.first_seq, count = excluded.count,
      rejected = excluded.rejected, expires_at_us = excluded.expires_at_us`;

const writing = {
  lockCounter: `
    select first_seq, last_seq, last_created_at_us from team_counters where team_id = $1 for update`,

  addCounter: `
    insert into team_counters (team_id, first_seq, last_seq, last_created_at_us)
    values ($1, $2::bigint, $2::bigint - 1, 0) on conflict (team_id) do nothing`,

  // Payloads are sent as one run of bytes in which each row knows its ranges: an array of bytes would be sent as text, twice as long.
  // A plain `select from unnest` would be planned on a coordinator; joined to the team's counter it runs on the team's shard.
  insertTraces: `
    insert into traces (team_id, ${tracesInsert.columns})
    select c.team_id, ${tracesInsert.values}
    from team_counters c, unnest(${tracesInsert.arrays}) as u(${tracesInsert.names})
    where c.team_id = $1`,

  addRollups: `
    insert into rollups (team_id, dimension, day, key, ${measureColumns})
    select c.team_id, u.dimension, u.day, u.key, ${measureNames.map((name) => `u.${name}`).join(', ')}
    from team_counters c, unnest($2::smallint[], $3::integer[], $4::text[], ${measureArrays.join(', ')})
      as u(dimension, day, key, ${measureColumns})
    where c.team_id = $1
    on conflict (team_id, dimension, day, key) do update set ${addedUp.join(', ')}`,

  moveCounter: `
    update team_counters set last_seq = $2, last_created_at_us = $3 where team_id = $1`,

  findRequests: `
    select key_hash, body_hash, first_seq, count, rejected from idempotency
    where team_id = $1 and key_hash = any($2::text[]) and expires_at_us > $3`,

  // A few at a time: a transaction must not stand still because yesterday was busy.
  forgetRequests: `
    delete from idempotency where team_id = $1 and key_hash in (
      select key_hash from idempotency where team_id = $1 and expires_at_us <= $2
      limit ${limits.idempotencySweepRowsMax})`,

  noteRequests: `
    insert into idempotency (team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us)
    select c.team_id, u.key_hash, u.body_hash, u.first_seq, u.count, u.rejected, $2
    from team_counters c, unnest($3::text[], $4::text[], $5::bigint[], $6::integer[], $7::text[])
      as u(key_hash, body_hash, first_seq, count, rejected)
    where c.team_id = $1
    ${replaceRequest}`,

  takeRequests: `
    insert into idempotency (team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us)
    select c.team_id, u.key_hash, u.body_hash, u.first_seq, u.count, u.rejected, u.expires_at_us
    from team_counters c, unnest($2::text[], $3::text[], $4::bigint[], $5::integer[], $6::text[], $7::bigint[])
      as u(key_hash, body_hash, first_seq, count, rejected, expires_at_us)
    where c.team_id = $1
    ${replaceRequest}`,
};

const reading = {
  readCounter: `
    select first_seq, last_seq, last_created_at_us from team_counters where team_id = $1`,

  findTrace: `select 1 from traces where team_id = $1 and id = $2`,

  readTrace: `select ${traceColumns} from traces where team_id = $1 and id = $2`,

  readForward: `
    select ${traceColumns} from traces where team_id = $1 and seq between $2 and $3 order by seq`,

  readPacked: readInChunks('asc', payloadNames, limits.moveBytesMax),

  readRequests: `
    select key_hash, body_hash, first_seq, count, rejected, expires_at_us from idempotency
    where team_id = $1 and expires_at_us > $2 and key_hash > $3
    order by key_hash limit ${limits.moveRowsMax}`,

  readTotal: `
    select ${measureColumns} from rollups
    where team_id = $1 and dimension = ${dimensions.total} and day = ${allTime} and key = ''`,

  readDays: `
    select day, ${measureColumns} from rollups
    where team_id = $1 and dimension = ${dimensions.total} and day between $2 and $3 and key = ''
    order by day`,

  readModels: readGroups(dimensions.model),

  readFeatures: readGroups(dimensions.feature),

  readTopModels: `${readGroups(dimensions.model)} limit $2`,

  readTopFeatures: `${readGroups(dimensions.feature)} limit $2`,

  auditTraces: readInChunks('asc', payloadNames, limits.auditChunkBytes, {
    which: `seq > $2 order by seq limit ${limits.auditChunkRows}`,
  }),

  auditRollups: `
    select dimension, day, key, ${measureColumns} from rollups
    where team_id = $1 and (dimension, day, key) > ($2, $3, $4)
    order by dimension, day, key limit ${limits.auditChunkRows}`,
};

/** The dimension stands in the text: as a parameter it would be planned anew each time. */
function readGroups(dimension: Dimension): string {
  return `
    select key, ${measureColumns} from rollups
    where team_id = $1 and dimension = ${dimension} and day = ${allTime}
    order by calls desc, key`;
}

/**
 * Rows between two sequence numbers, as long as the payloads of the rows before fill no chunk. Their stored length is known without
 * reading them, and what is omitted is not read at all.
 */
function readInChunks(
  order: 'asc' | 'desc',
  payloads: readonly PayloadName[],
  bytesMax: number,
  { which = 'seq between $2 and $3', isCut = false } = {},
) {
  const lengths = payloads.map((name) => `coalesce(octet_length(${name}), 0)`).join(' + ') || '0';
  const cut = limits.previewStoredBytes;
  const read = isCut
    ? [
        ...payloads.map((name) => `substring(${name} from 1 for ${cut}) as ${name}`),
        `${lengths} as stored_bytes`,
      ]
    : payloads;
  const shown = [shortColumns, ...payloads, ...(isCut ? ['stored_bytes'] : [])].join(', ');
  return `
    select ${shown} from (
      select ${[shortColumns, ...read].join(', ')}, sum(${lengths}) over (
        order by seq ${order} rows between unbounded preceding and 1 preceding) as bytes_before
      from traces where team_id = $1 and ${which}) as page
    where coalesce(bytes_before, 0) < ${bytesMax}
    order by seq ${order}`;
}

export const ofOneTeam = { ...writing, ...reading };

/** Newest first, by the payloads that are read, whole or cut: one statement for each combination. */
export const readDownStatements: ReadonlyMap<string, string> = new Map(
  combinationsOf(payloadNames).flatMap((payloads) =>
    [false, true].map((isCut) => [
      downName(payloads, isCut),
      readInChunks('desc', payloads, limits.pageChunkBytesMax, { isCut }),
    ]),
  ),
);

function downName(payloads: readonly PayloadName[], isCut: boolean): string {
  return `${payloads.join()}${isCut ? ' cut' : ''}`;
}

/** The statement of one team that reads such a page. */
export function readDown({ omit, previewChars = null }: PageRequest): string {
  const payloads = payloadNames.filter((name) => !omit.has(name));
  const name = downName(payloads, previewChars !== null);
  const statement = readDownStatements.get(name);
  if (statement === undefined) throw new Error(`no statement reads the payloads "${name}"`);
  return statement;
}

/** Every subset, with the names in their order. */
function combinationsOf<T>(names: readonly T[]): T[][] {
  return names.reduce<T[][]>(
    (before, name) => [...before, ...before.map((some) => [...some, name])],
    [[]],
  );
}

// --- Of small tables that every node holds ---

const selectKey = `
  select k.id, k.hash, k.prefix, k.name, k.scope, k.created_at_us, k.expires_at_us, k.revoked_at_us, k.replaced_by,
    k.team_id, t.name as team_name, u.last_used_at_us
  from api_keys k join teams t on t.id = k.team_id left join key_uses u on u.key_id = k.id`;

export const ofSmallTables = {
  addTeam: `
    insert into teams (id, name, created_at_us) values ($1, $2, $3)
    on conflict (name) do nothing returning id`,
  readTeamByName: `select id, name, created_at_us from teams where name = $1`,
  readTeamById: `select id, name, created_at_us from teams where id = $1`,
  addKey: `
    insert into api_keys (id, team_id, hash, prefix, name, scope, created_at_us, expires_at_us)
    values ($1, $2, $3, $4, $5, $6, $7, $8)`,
  takeKey: `
    insert into api_keys (id, team_id, hash, prefix, name, scope, created_at_us, expires_at_us, revoked_at_us, replaced_by)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    on conflict (id) do update set expires_at_us = excluded.expires_at_us, revoked_at_us = coalesce(excluded.revoked_at_us, api_keys.revoked_at_us),
      replaced_by = excluded.replaced_by`,
  replaceKey: `
    update api_keys set expires_at_us = $2, replaced_by = $3
    where id = $1 and revoked_at_us is null and replaced_by is null returning team_id`,
  revokeKey: `update api_keys set revoked_at_us = $2 where id = $1 and revoked_at_us is null`,
  readKeyById: `${selectKey} where k.id = $1`,
  readKeysByHash: `${selectKey} where k.hash = any($1::text[])`,
  readKeys: `${selectKey} order by k.created_at_us, k.id`,
  readKeysOfTeam: `${selectKey} where k.team_id = $1 order by k.created_at_us, k.id`,
  noteKeyUses: `
    insert into key_uses (key_id, last_used_at_us) select * from unnest($1::text[], $2::bigint[])
    on conflict (key_id) do update set
      last_used_at_us = greatest(key_uses.last_used_at_us, excluded.last_used_at_us)`,
  addSecret: `insert into server_secrets (name, value) values ($1, $2) on conflict (name) do nothing`,
  readSecret: `select value from server_secrets where name = $1`,
  addSignInCode: `insert into sign_in_codes (code_hash, key_id, expires_at_us) values ($1, $2, $3)`,
  removeExpiredCodes: `delete from sign_in_codes where expires_at_us <= $1`,
  findSignInCode: `select key_id from sign_in_codes where code_hash = $1 and expires_at_us > $2`,
  takeSignInCode: `delete from sign_in_codes where code_hash = $1 and expires_at_us > $2 returning key_id`,
};

// --- Over all teams: asked by operators and at the start, never by a request ---

export const overAllTeams = {
  readTeams: `
    select t.id, t.name, t.created_at_us, coalesce(c.last_seq - c.first_seq + 1, 0) as traces,
      (select count(*) from api_keys k where k.team_id = t.id and k.revoked_at_us is null
        and (k.expires_at_us is null or k.expires_at_us > $1)) as live_keys
    from teams t left join team_counters c on c.team_id = t.id order by t.name`,
  findOrphans: `
    select o.team_id from (select distinct team_id from traces union select distinct team_id from rollups) as o
    where o.team_id not in (select id from teams)`,
};
