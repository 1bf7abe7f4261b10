import { payloadColumns, shortColumns } from '../trace-rows.ts';
import { replaceRequest } from './statements.ts';

/** The statements that write for several teams in one transaction. They are used only if the tables are not distributed. */
const requestColumns = 'team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us';
const requestTypes = ['uuid', 'text', 'text', 'bigint', 'integer', 'text', 'bigint'];

const selectCounters = `
    select team_id, first_seq, last_seq, last_created_at_us, fence from team_counters
    where team_id = any($1::uuid[]) order by team_id`;

/** Rows are sent as records of the table's own row type (`trace-records.ts`). */
function insertRecords(table: string, columns: string, parameter: string): string {
  const values = columns.split(', ').map((name) => `u.${name}`);
  return `
    insert into ${table} (${columns})
    select ${values.join(', ')} from unnest(${parameter}::${table}[]) as u`;
}

export function insertTraces(parameter: string): string {
  return insertRecords('traces', `team_id, seq, ${shortColumns}`, parameter);
}

export function insertPayloads(parameter: string): string {
  return insertRecords('trace_payloads', `team_id, seq, ${payloadColumns}`, parameter);
}

export function insertRequests(parameter: string): string {
  return `${insertRecords('idempotency', requestColumns, parameter)} ${replaceRequest}`;
}

/** Without the second condition, PostgreSQL reads the counters of all teams. */
export function moveCounters(teams: string, lastSeqs: string, lastTimes: string): string {
  return `
    update team_counters c set last_seq = u.last_seq, last_created_at_us = u.last_us
    from unnest(${teams}::uuid[], ${lastSeqs}::bigint[], ${lastTimes}::bigint[]) as u(team_id, last_seq, last_us)
    where c.team_id = u.team_id and c.team_id = any(${teams}::uuid[])`;
}

/** Removes expired requests: at most `ofTeamMax` of each team, and `inAllMax` in all. */
export function forgetRequests(
  teams: string,
  now: string,
  ofTeamMax: string,
  inAllMax: string,
): string {
  return `
    delete from idempotency i
    using (
      select u.team_id, expired.key_hash from unnest(${teams}::uuid[]) as u(team_id), lateral (
        select e.key_hash from idempotency e where e.team_id = u.team_id and e.expires_at_us <= ${now}
        limit ${ofTeamMax}) as expired
      limit ${inAllMax}) as swept
    where i.team_id = swept.team_id and i.key_hash = swept.key_hash`;
}

export const ofManyTeams = {
  // In a fixed order, so that two transactions never wait for each other.
  lockCounters: `${selectCounters} for update`,

  lockFreeCounters: `${selectCounters} for update skip locked`,

  addCounters: `
    insert into team_counters (team_id, first_seq, last_seq, last_created_at_us)
    select team_id, 1, 0, 0 from unnest($1::uuid[]) as u(team_id) order by team_id
    on conflict (team_id) do nothing`,

  insertTraces: insertTraces('$1'),

  insertPayloads: insertPayloads('$1'),

  moveCounters: moveCounters('$1', '$2', '$3'),

  findRequests: `
    select u.team_id, u.key_hash, found.*
    from unnest($1::uuid[], $2::text[]) as u(team_id, key_hash), lateral (
      select i.body_hash, i.first_seq, i.count, i.rejected from idempotency i
      where i.team_id = u.team_id and i.key_hash = u.key_hash and i.expires_at_us > $3
      limit 1) as found`,

  forgetRequests: forgetRequests('$1', '$2', '$3', '$4'),

  takeRequests: `
    insert into idempotency (${requestColumns})
    select u.* from unnest(${requestTypes.map((type, i) => `$${i + 1}::${type}[]`).join(', ')}) as u
    ${replaceRequest}`,
};
