import { createHash } from 'node:crypto';
import type pg from 'pg';
import { limits } from '../../limits.ts';
import { payloadColumns, shortColumns } from '../trace-rows.ts';
import { run } from './connection.ts';
import { migrationLock } from './migrate.ts';
import { tablesByTeam } from './tables.ts';

/**
 * On a cluster, a function stores the batch of all teams of a node. Citus runs the whole call on the node of the first team, as one
 * statement with its own commit. Sent one by one, every statement and every setting would be planned by the coordinator and sent to the
 * node separately, and a transaction of several teams could span nodes.
 */
const parameters = [
  'first_team uuid',
  'new_traces traces[]',
  'new_payloads trace_payloads[]',
  'new_requests idempotency[]',
  'now_us bigint',
  'sweep_max integer',
  'team_ids uuid[]',
  'to_seq bigint[]',
  'to_us bigint[]',
  'from_seq bigint[]',
  'from_us bigint[]',
  'from_fence integer[]',
  'commit_as text',
  'lock_ms text',
];

/** Citus plans each insert of one row quickly. If there are more rows than this, it is faster to copy them to the shards. */
const fewRowsMax = 6;

function insertAll(table: string, rows: string, columns: string): string {
  const from = (source: string): string =>
    columns
      .split(', ')
      .map((name) => `${source}.${name}`)
      .join(', ');
  return `
  if cardinality(${rows}) > ${fewRowsMax} then
    insert into ${table} (${columns}) select ${from('u')} from unnest(${rows}) as u;
  else
    declare one ${table};
    begin
      foreach one in array ${rows} loop
        insert into ${table} (${columns}) values (${from('one')});
      end loop;
    end;
  end if;`;
}

/**
 * Fails and stores nothing if a counter is not as expected, if a request was stored before, or if a team is on another node: the settings
 * last until the commit, but apply to this node only. While the counters are locked, no team can be moved to another node. Teams are read
 * from records: with an array element in its place, Citus 13.2 crashed.
 */
const body = `
declare
  moved record;
begin
  perform set_config('synchronous_commit', commit_as, true), set_config('lock_timeout', lock_ms, true);
  begin
    for moved in select u.* from unnest(team_ids, to_seq, to_us, from_seq, from_us, from_fence)
      as u(team_id, seq, us, old_seq, old_us, fence)
    loop
      update team_counters set last_seq = moved.seq, last_created_at_us = moved.us
      where team_id = moved.team_id and last_seq = moved.old_seq and last_created_at_us = moved.old_us and fence = moved.fence;
      if not found then
        raise division_by_zero using message = 'a counter is not as expected', detail = moved.team_id::text;
      end if;
    end loop;
  exception when lock_not_available then
    raise lock_not_available using message = 'a team is locked', detail = moved.team_id::text;
  end;
  perform 1 from unnest(team_ids) as u(team_id) where not exists (
    select 1 from pg_dist_placement join pg_dist_local_group using (groupid)
    where shardid = get_shard_id_for_distribution_column('${tablesByTeam[0]}', u.team_id));
  if found then raise exception 'the data of a team is on another node'; end if;
  if cardinality(new_requests) > 0 then
    for moved in select u.team_id from unnest(team_ids) as u(team_id) loop
      perform 1 from idempotency where team_id = moved.team_id and expires_at_us <= now_us limit 1;
      if found then
        delete from idempotency where team_id = moved.team_id and key_hash in (
          select key_hash from idempotency where team_id = moved.team_id and expires_at_us <= now_us limit sweep_max);
      end if;
    end loop;
    ${insertAll('idempotency', 'new_requests', 'team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us')}
  end if;
  ${insertAll('traces', 'new_traces', `team_id, seq, ${shortColumns}`)}
  ${insertAll('trace_payloads', 'new_payloads', `team_id, seq, ${payloadColumns}`)}
end`;

const signature = parameters.join(', ');
const hash = createHash('sha256').update(signature).update(body).digest('hex');

/** Another version of the function has another name, so that servers of both versions can run side by side. */
const name = `tracetally_store_${hash.slice(0, 12)}`;

export const callStoreFunction = `select ${name}(${parameters.map((_, i) => `$${i + 1}`).join(', ')})`;

/** The search path is fixed, since the nodes may have another one. */
const createFunction = `
  create function ${name}(${signature}) returns void language plpgsql set search_path from current as $store$${body}$store$`;

const distributeFunction = `
  select create_distributed_function(to_regproc($1)::oid::regprocedure, 'first_team', colocate_with => $2)`;

/**
 * Creates the function on all nodes if it is missing. Returns whether it can be used: the database user may not be allowed to create it,
 * or a node may not respond. Then the next start tries again.
 */
export async function ensureStoreFunction(client: pg.ClientBase): Promise<boolean> {
  const isThere = async (): Promise<boolean> => {
    const { rows } = await run(client, 'select to_regproc($1) is not null as there', [name]);
    return rows[0]?.['there'] === true;
  };
  if (await isThere()) return true;
  await run(client, 'begin isolation level read committed');
  try {
    await run(client, `set local lock_timeout = ${limits.postgresLockMsMax}`);
    await run(client, 'select pg_advisory_xact_lock($1)', [migrationLock]);
    // Another server may have created it in the meantime.
    if (!(await isThere())) {
      await run(client, createFunction);
      await run(client, distributeFunction, [name, tablesByTeam[0]]);
    }
    await run(client, 'commit');
    return true;
  } catch {
    // Also after the coordinator has lost a node. If our own connection is lost, this fails.
    await run(client, 'rollback');
    return false;
  }
}
