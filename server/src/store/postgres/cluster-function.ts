import { payloadColumns, shortColumns } from '../trace-rows.ts';
import { tablesByTeam } from './tables.ts';

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
export const clusterBody = `
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
