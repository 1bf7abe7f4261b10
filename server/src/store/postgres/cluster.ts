import type pg from 'pg';
import { limits } from '../../limits.ts';
import { ask, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { tablesByTeam, teamColumn } from './tables.ts';

/**
 * Adds up a number over all nodes of a Citus cluster, since each node reports only its own data and connections. Without Citus it is
 * the number of the one server.
 */
export async function sumOverNodes(
  { reading }: Pick<Pools, 'reading'>,
  selectNumber: string,
): Promise<number> {
  const [place] = await ask(reading, readIsCluster, []);
  const text =
    place?.['is_cluster'] === true
      ? `select sum(result::numeric) as number from run_command_on_all_nodes($node$${selectNumber}$node$) where success`
      : `select (${selectNumber}) as number`;
  const [row] = await ask(reading, text, []);
  return Number(row?.['number'] ?? 0);
}

const readIsCluster = "select to_regproc('run_command_on_all_nodes') is not null as is_cluster";

/** Distributes one table with its rows, together with a table that is already distributed, or `none`. */
export const createByTeam = 'select create_distributed_table($1, $2, colocate_with => $3)';

const readDistributed = `
  select logicalrelid::regclass::text as table from pg_dist_partition
  where partmethod = 'h' and logicalrelid = any($1::regclass[])`;

/** The tables that are distributed by team; none without Citus. */
export async function distributedTables(client: pg.ClientBase): Promise<ReadonlySet<string>> {
  const { rows } = await run(
    client,
    "select to_regclass('pg_dist_partition') is not null as there",
  );
  if (rows[0]?.['there'] !== true) return new Set();
  const found = await run(client, readDistributed, [tablesByTeam]);
  return new Set(found.rows.map((row) => row['table'] as string));
}

/** Distributes tables that a migration has added to a cluster. */
export async function distributeNewTables(client: pg.ClientBase): Promise<void> {
  const [first, ...others] = tablesByTeam;
  const distributed = await distributedTables(client);
  if (!distributed.has(first)) return;
  for (const table of others.filter((name) => !distributed.has(name))) {
    await run(client, createByTeam, [table, teamColumn, first], limits.postgresUnhurriedMsMax);
  }
}
