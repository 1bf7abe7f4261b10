import { distributePostgres } from '../../src/tools/distribute-postgres.ts';
import type { TestPostgres } from './postgres.ts';

/**
 * Stand-ins for the few functions and tables of Citus that the command uses: they note what they are asked for and what a table is
 * afterwards, and move nothing. Whether Citus accepts the tables, and every statement on them, is shown by other tests and by hand.
 */
const standIns = `
  insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    values (99999, 'citus', 10, 'public'::regnamespace, false, '13.0');
  create schema citus;
  set search_path = citus;
  create table calls (no bigint generated always as identity, what text not null);
  create table nodes (nodeid integer, success boolean, fsync text);
  insert into nodes values (1, true, 'on'), (2, true, 'on');
  create table pg_dist_partition
    (logicalrelid regclass primary key, partmethod "char", partkey text, colocationid integer, repmodel "char");
  create table pg_dist_shard (logicalrelid regclass, shardid bigint);
  create table pg_dist_shard_placement (shardid bigint, nodename text, nodeport integer);
  create table pg_dist_placement (shardid bigint, groupid integer);
  insert into pg_dist_placement values (7, 0);
  create table pg_dist_local_group (groupid integer);
  insert into pg_dist_local_group values (0);

  create function column_to_column_name(regclass, text) returns text language sql as 'select $2';
  create function run_command_on_all_nodes(command text)
    returns table (nodeid integer, success boolean, result text) language plpgsql as $$
    declare answer text := '0';
    begin
      if command <> 'show fsync' then execute command into answer; end if;
      return query select n.nodeid, n.success, case when not n.success then 'connection refused'
        when command = 'show fsync' then n.fsync when n.nodeid = 1 then answer else '0' end from citus.nodes n;
    end $$;
  create function create_reference_table(table_name regclass) returns void language sql as $$
    insert into citus.calls (what) values (table_name || ' on every node');
    insert into citus.pg_dist_partition values (table_name, 'n', null, 1, 't') $$;
  create function create_distributed_table(
    table_name regclass, distribution_column text, distribution_type text default 'hash',
    colocate_with text default 'default', shard_count integer default null) returns void language sql as $$
    insert into citus.calls (what) values (format('%s by %s, with %s', table_name, distribution_column, colocate_with));
    insert into citus.pg_dist_partition select table_name, 'h', distribution_column,
      coalesce((select colocationid from citus.pg_dist_partition where logicalrelid::text = colocate_with), 7), 's'
      on conflict (logicalrelid) do update set partmethod = excluded.partmethod, partkey = excluded.partkey,
        colocationid = excluded.colocationid, repmodel = excluded.repmodel;
    insert into citus.pg_dist_shard select table_name, table_name::oid::bigint * 100 + n from generate_series(1, 32) n;
    insert into citus.pg_dist_shard_placement select shardid, 'node-' || shardid % 3, 5432
      from citus.pg_dist_shard where logicalrelid = table_name $$;
  create function get_shard_id_for_distribution_column(table_name regclass, value uuid) returns bigint language sql as 'select 7';
  create function create_distributed_function(
    function_name regprocedure, distribution_arg_name text, colocate_with text) returns void language sql as $$
    insert into citus.calls (what) values (format('function by %s, with %s', distribution_arg_name, colocate_with)) $$;
  create function truncate_local_data_after_distributing_table(regclass) returns void language sql as
    'insert into citus.calls (what) values (''emptied '' || $1)'`;

/** A new database that looks like the coordinator of a cluster, to all appearances of `tracetally distribute`. */
export async function createClusterLike(postgres: TestPostgres): Promise<string> {
  const url = await postgres.createDatabase();
  await postgres.sql(url, standIns);
  const name = new URL(url).pathname.slice(1);
  await postgres.sql(url, `alter database ${name} set search_path = public, citus`);
  return url;
}

/** The same after `tracetally distribute`: the store takes its tables for distributed ones. */
export async function createDistributed(postgres: TestPostgres): Promise<string> {
  const url = await createClusterLike(postgres);
  await distributePostgres(url, () => {});
  return url;
}
