import { createHash } from 'node:crypto';
import type pg from 'pg';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { run } from './connection.ts';
import { clusterInserts, plainInserts } from './function-inserts.ts';
import type { FunctionInserts } from './function-inserts.ts';
import { migrationLock } from './migrate.ts';
import { stateOf } from './postgres-failures.ts';
import { tablesByTeam } from './tables.ts';

/** The function in the database that stores traces. A call is a transaction by itself. */
export interface StoreFunction {
  name: string;
  /** The statement that calls it. */
  call: string;
  create: string;
}

/** PostgreSQL's clock in microseconds since 1970. */
export const databaseUs = '(extract(epoch from clock_timestamp()) * 1000000)::bigint';

const parameters = [
  // Citus runs the call on the node of this team. It is one of the teams below.
  'first_team uuid',
  'call_token uuid',
  // Null for the clock of the database.
  'now_us bigint',
  'commit_as text',
  'lock_ms text',
  'skips_locked boolean',
  // The teams in ascending order, and how many of the writes belong to each.
  'team_ids uuid[]',
  'team_writes integer[]',
  // For each write its number of traces, the last of its given times and its idempotency key. Empty if no write has any.
  'write_rows integer[]',
  'write_times bigint[]',
  'write_keys text[]',
  // By team: the ids of reported calls, and the expected states of those that are known.
  'call_ids jsonb',
  'new_requests idempotency[]',
  'new_traces traces[]',
  'new_payloads trace_payloads[]',
];

/** A team without traces has no counter yet. To add it may mean to wait for another transaction that does, so it is not done if locks are skipped. */
const lockCounter = `
    for attempt in 1..2 loop
      if skips_locked then
        select c.last_seq, c.last_created_at_us into counter_seq, counter_us
        from team_counters c where c.team_id = team for no key update skip locked;
      else
        select c.last_seq, c.last_created_at_us into counter_seq, counter_us
        from team_counters c where c.team_id = team for no key update;
      end if;
      exit when found or skips_locked or attempt = 2;
      insert into team_counters (team_id, first_seq, last_seq, last_created_at_us) values (team, 1, 0, 0)
      on conflict (team_id) do nothing;
    end loop;
    is_open := counter_seq is not null;`;

/** Nothing of the team is stored if other reports of its calls were stored since the server looked. */
const compareCalls = `
    expected := call_ids -> team::text;
    if is_open and expected is not null then
      select coalesce(jsonb_object_agg(i.key_hash, i.body_hash) filter (where i.expires_at_us > us), '{}') into states
      from idempotency i where i.team_id = team
        and i.key_hash = any(array(select jsonb_array_elements_text(expected -> 'ids')));
      is_open := states = expected -> 'states';
      if not is_open then
        other_calls := coalesce(other_calls, '{}') || jsonb_build_object(team::text, states);
      end if;
    end if;`;

/** By the primary key alone: with the time as a condition, PostgreSQL may read all keys that have not expired. */
const findRequest = `
      is_new := is_open;
      key := write_keys[write_no];
      if is_open and key is not null then
        select i.body_hash, i.first_seq, i.count, i.rejected, i.expires_at_us into earlier
        from idempotency i where i.team_id = team and i.key_hash = key;
        is_new := not found or earlier.expires_at_us <= us;
        if not is_new then
          requests := coalesce(requests, '{}') || jsonb_build_object(write_no, jsonb_build_object('bodyHash',
            earlier.body_hash, 'firstSeq', earlier.first_seq, 'count', earlier.count, 'rejected', earlier.rejected));
        end if;
      end if;`;

/** Times are strictly ascending, unless the clock was set back. */
const assignNumbers = `
      first_seqs[write_no] := 0;
      first_times[write_no] := 0;
      if is_new then
        added := write_rows[write_no];
        first_seqs[write_no] := counter_seq + 1;
        counter_seq := counter_seq + added;
        if write_times[write_no] > 0 then
          first_times[write_no] := counter_us + 1;
          counter_us := greatest(write_times[write_no], counter_us + added);
        elsif added > 0 then
          ahead_us := counter_us - us;
          if ahead_us > ${limits.clockAheadUsMax} then
            jumps := coalesce(jumps, '{}') || jsonb_build_object(team::text, ahead_us);
          end if;
          counter_us := case when ahead_us between 0 and ${limits.clockAheadUsMax} then counter_us + 1 else us end;
          first_times[write_no] := counter_us;
          counter_us := counter_us + added - 1;
        end if;
      end if;`;

/** Twice the number that can be added, so that the table does not grow forever. */
const sweepRequests = `
    select min(e.expires_at_us) into oldest_us from idempotency e where e.team_id = team;
    if oldest_us <= us then
      delete from idempotency i where i.team_id = team and i.key_hash in (
        select e.key_hash from idempotency e where e.team_id = team and e.expires_at_us <= us order by e.expires_at_us
        limit least(greatest(${limits.idempotencySweepRowsMax}, 2 * cardinality(new_requests)), sweep_left));
      get diagnostics swept = row_count;
      sweep_left := sweep_left - swept;
    end if;`;

/** Teams are locked in a fixed order, so that two calls never wait for each other, and one by one, since on Citus each is another shard. */
function bodyOf(inserts: FunctionInserts, checkNode: string): string {
  return `
declare
  life_us constant bigint := ${limits.idempotencyLifeMs * 1000};
  team_no integer := 0;
  write_no integer := 0;
  team uuid;
  seq_before bigint;
  counter_seq bigint;
  counter_us bigint;
  us bigint;
  ahead_us bigint;
  is_open boolean;
  is_new boolean;
  key text;
  added integer;
  expected jsonb;
  states jsonb;
  earlier record;
  oldest_us bigint;
  swept integer;
  sweep_left integer := greatest(${limits.postgresSweepRowsMax}, 2 * cardinality(new_requests));
  first_seqs bigint[] := '{}';
  first_times bigint[] := '{}';
  requests jsonb;
  other_calls jsonb;
  jumps jsonb;
  answer text;
begin
  perform set_config('synchronous_commit', commit_as, true), set_config('lock_timeout', lock_ms, true);
  foreach team in array team_ids loop
    team_no := team_no + 1;
    ${lockCounter}
    us := coalesce(now_us, ${databaseUs});
    ${compareCalls}
    seq_before := counter_seq;
    for n in 1..team_writes[team_no] loop
      write_no := write_no + 1;
      ${findRequest}
      ${assignNumbers}
    end loop;
    if counter_seq > seq_before then
      update team_counters set last_seq = counter_seq, last_created_at_us = counter_us where team_id = team;
    end if;
    if is_open and cardinality(new_requests) > 0 then
      ${sweepRequests}
    end if;
  end loop;
  perform set_config('lock_timeout', '${limits.postgresLockMsMax}', true);
  ${checkNode}
  answer := json_build_object('firstSeqs', first_seqs, 'firstTimes', first_times,
    'requests', requests, 'otherCalls', other_calls, 'jumps', jumps);
  insert into store_calls (team_id, token, answer, expires_at_us)
  values (first_team, call_token, answer, us + ${limits.postgresCallLifeMs * 1000});
  if cardinality(new_requests) > 0 then ${inserts.requests}
  end if;
  ${inserts.traces}
  if cardinality(new_payloads) > 0 then ${inserts.payloads}
  end if;
  return answer;
end`;
}

/**
 * The settings apply to the node on which the function runs. If the data of a team is on another one, Citus would store it there without
 * them. While the counters are locked, no team can be moved.
 */
const checkNode = `
  perform 1 from unnest(team_ids) as t(team_id) where not exists (
    select 1 from pg_dist_placement join pg_dist_local_group using (groupid)
    where shardid = get_shard_id_for_distribution_column('${tablesByTeam[0]}', t.team_id));
  if found then
    raise object_not_in_prerequisite_state using message = 'the data of a team is on another node';
  end if;`;

/** Another version of the function has another name, so that servers of both versions can run side by side. */
function declare(settings: string, body: string): StoreFunction {
  const declared = parameters.join(', ');
  const hash = createHash('sha256').update(declared).update(settings).update(body).digest('hex');
  const name = `tracetally_store_${hash.slice(0, 12)}`;
  return {
    name,
    call: `select ${name}(${parameters.map((_, i) => `$${i + 1}`).join(', ')})`,
    create: `create function ${name}(${declared}) returns text language plpgsql ${settings} as $store$${body}$store$`,
  };
}

export const plainFunction = declare('', bodyOf(plainInserts, ''));

/** The search path is fixed, since the nodes may have another one. */
export const clusterFunction = declare(
  'set search_path from current',
  bodyOf(clusterInserts, checkNode),
);

export function storeFunctionFor(isCluster: boolean): StoreFunction {
  return isCluster ? clusterFunction : plainFunction;
}

const distributeFunction = `
  select create_distributed_function(to_regproc($1)::oid::regprocedure, 'first_team', colocate_with => $2)`;

async function isThere(client: pg.ClientBase, { name }: StoreFunction): Promise<boolean> {
  const { rows } = await run(client, 'select to_regproc($1) is not null as there', [name]);
  return rows[0]?.['there'] === true;
}

/** Creates the function if it is missing, on a cluster on all nodes. */
export async function ensureStoreFunction(
  client: pg.ClientBase,
  isCluster: boolean,
): Promise<void> {
  const wanted = storeFunctionFor(isCluster);
  if (await isThere(client, wanted)) return;
  await run(client, 'begin isolation level read committed');
  try {
    await run(client, `set local lock_timeout = ${limits.postgresLockMsMax}`);
    await run(client, 'select pg_advisory_xact_lock($1)', [migrationLock]);
    // Another server may have created it in the meantime.
    if (!(await isThere(client, wanted))) {
      await run(client, wanted.create);
      if (isCluster) await run(client, distributeFunction, [wanted.name, tablesByTeam[0]]);
    }
    await run(client, 'commit');
  } catch (error) {
    await run(client, 'rollback');
    throw stateOf(error) === notAllowed ? mayNotCreate() : error;
  }
}

const notAllowed = '42501';

function mayNotCreate(): OperatorError {
  return new OperatorError(
    'The database user is not allowed to create functions. Grant it "create" on the schema, or start a server once with another user.',
  );
}
