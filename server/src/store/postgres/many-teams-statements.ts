import { payloadColumns, shortColumns } from '../trace-rows.ts';
import { replaceRequest } from './statements.ts';

/** The statements that write for several teams in one transaction. They are used only if the tables are not distributed. */
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

const insertTraces = insertRecords('traces', `team_id, seq, ${shortColumns}`, '$1');

function insertPayloads(parameter: string): string {
  return insertRecords('trace_payloads', `team_id, seq, ${payloadColumns}`, parameter);
}

/** Without the second condition, PostgreSQL reads the counters of all teams. */
function moveCounters(first: number): string {
  return `
    update team_counters c set last_seq = u.last_seq, last_created_at_us = u.last_us
    from unnest($${first}::uuid[], $${first + 1}::bigint[], $${first + 2}::bigint[]) as u(team_id, last_seq, last_us)
    where c.team_id = u.team_id and c.team_id = any($${first}::uuid[])`;
}

const requestTypes = ['uuid', 'text', 'text', 'bigint', 'integer', 'text', 'bigint'];

function takeRequests(first: number): string {
  const arrays = requestTypes.map((type, i) => `$${first + i}::${type}[]`);
  return `
    insert into idempotency (team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us)
    select u.* from unnest(${arrays.join(', ')}) as u`;
}

function findRequests(teams: string, keyHashes: string, now: string): string {
  return `
    select u.team_id, u.key_hash, found.*
    from unnest(${teams}::uuid[], ${keyHashes}::text[]) as u(team_id, key_hash), lateral (
      select i.body_hash, i.first_seq, i.count, i.rejected from idempotency i
      where i.team_id = u.team_id and i.key_hash = u.key_hash and i.expires_at_us > ${now}
      limit 1) as found`;
}

/**
 * A whole transaction in one statement. It stores nothing, and returns false, if a counter is not as expected or a request was stored
 * before. The parameters are the traces and payloads; the teams with the new values of their counters; their expected values; and, with
 * requests, the time and the columns of the requests.
 */
function storeIfAsExpected(hasRequests: boolean): string {
  const isAsExpected = '(select is_so from as_expected)';
  return `
  with counters as (
    select team_id, last_seq, last_created_at_us, fence from team_counters
    where team_id = any($3::uuid[]) order by team_id for update
  ), as_expected as materialized (
    select count(*) = cardinality($3::uuid[])
      ${hasRequests ? `and not exists (${findRequests('$10', '$11', '$9')})` : ''} as is_so
    from counters join unnest($3::uuid[], $6::bigint[], $7::bigint[], $8::integer[])
      as u(team_id, last_seq, last_created_at_us, fence) using (team_id, last_seq, last_created_at_us, fence)
  ), traces_stored as (${insertTraces} where ${isAsExpected}
  ), payloads_stored as (${insertPayloads('$2')} where ${isAsExpected}
  ), ${hasRequests ? `requests_stored as (${takeRequests(10)} where ${isAsExpected} ${replaceRequest}),` : ''}
  counters_moved as (${moveCounters(3)} and ${isAsExpected})
  select is_so from as_expected`;
}

export const ofManyTeams = {
  // In a fixed order, so that two transactions never wait for each other.
  lockCounters: `${selectCounters} for update`,

  lockFreeCounters: `${selectCounters} for update skip locked`,

  addCounters: `
    insert into team_counters (team_id, first_seq, last_seq, last_created_at_us)
    select team_id, 1, 0, 0 from unnest($1::uuid[]) as u(team_id) order by team_id
    on conflict (team_id) do nothing`,

  insertTraces,

  insertPayloads: insertPayloads('$1'),

  moveCounters: moveCounters(1),

  findRequests: findRequests('$1', '$2', '$3'),

  forgetRequests: `
    delete from idempotency i
    using (
      select u.team_id, expired.key_hash from unnest($1::uuid[]) as u(team_id), lateral (
        select e.key_hash from idempotency e where e.team_id = u.team_id and e.expires_at_us <= $2
        limit $3) as expired
      limit $4) as swept
    where i.team_id = swept.team_id and i.key_hash = swept.key_hash`,

  takeRequests: `${takeRequests(1)} ${replaceRequest}`,

  storeIfAsExpected: storeIfAsExpected(false),

  storeWithRequestsIfAsExpected: storeIfAsExpected(true),
};
