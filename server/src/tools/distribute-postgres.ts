import pg from 'pg';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import { checkServer } from '../store/postgres/check-server.ts';
import { createByTeam } from '../store/postgres/cluster.ts';
import { run } from '../store/postgres/connection.ts';
import { migrationLock } from '../store/postgres/migrate.ts';
import { openPostgresStore } from '../store/postgres/open-postgres-store.ts';
import { explainOpening, addressOf } from '../store/postgres/address.ts';
import type { Address } from '../store/postgres/address.ts';
import { stateOf } from '../store/postgres/postgres-failures.ts';
import { tablesByTeam, tablesOnEveryNode, teamColumn } from '../store/postgres/tables.ts';

type LayoutName = 'on every node' | 'by team';

export interface DistributeReport {
  nodes: number;
  shards: number;
  /** `changed` if this run distributed the table. */
  tables: { table: string; layout: LayoutName; changed: boolean }[];
}

/** In this order: the tables of a team refer to the small ones. */
const layouts = new Map<string, LayoutName>([
  ...tablesOnEveryNode.map((table) => [table, 'on every node'] as const),
  ...tablesByTeam.map((table) => [table, 'by team'] as const),
]);

/** It moves all rows of a table. */
const unhurriedMs = limits.postgresUnhurriedMsMax;

/**
 * Distributes the tables and their rows over the nodes of a Citus cluster, in one transaction. Safe to run again: tables that are
 * already distributed are not changed.
 */
export async function distributePostgres(
  url: string,
  onTable: (table: string) => void,
): Promise<DistributeReport> {
  const address = addressOf(url);
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tracetally distribute',
    connectionTimeoutMillis: limits.postgresConnectMsMax,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    await checkServer(client, address.name);
    await refuseWithoutCitus(client, address.name);
    await refuseUnsafeNodes(client);
    await migrateUnused(url, address);
    await run(client, 'begin isolation level read committed');
    const tables = await distribute(client, onTable);
    await run(client, 'commit', [], unhurriedMs);
    return { ...(await countPlaces(client)), tables };
  } catch (error) {
    throw explain(error, address);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Opening the store migrates its tables. Fails if servers are running: they look for distributed tables only when they start. */
async function migrateUnused(url: string, address: Address): Promise<void> {
  const store = await openPostgresStore({ url, clock: { kind: 'system' }, role: 'tool' });
  try {
    const users = await store.claim();
    if (users === null) return;
    throw new OperatorError(
      `${address.name} is in use by ${users}. Stop the servers, then run the command again. Nothing was moved.`,
    );
  } finally {
    await store.close();
  }
}

async function distribute(
  client: pg.Client,
  onTable: (table: string) => void,
): Promise<DistributeReport['tables']> {
  await run(client, `set local lock_timeout = ${limits.postgresLockMsMax}`);
  // Migrating servers and other runs of this command wait for this lock.
  await run(client, 'select pg_advisory_xact_lock($1)', [migrationLock]);
  const before = await readDistributed(client);
  const missing = [...layouts.keys()].filter((table) => !before.has(table));
  if (missing.length > 0) {
    // All tables at once and first, so that no transaction of a server is interrupted halfway.
    await run(client, `lock table ${missing.join(', ')} in access exclusive mode`);
  }
  for (const table of missing) {
    onTable(table);
    if (layouts.get(table) === 'on every node') {
      await run(client, 'select create_reference_table($1)', [table], unhurriedMs);
    } else {
      const beside = table === tablesByTeam[0] ? 'none' : tablesByTeam[0];
      await run(client, createByTeam, [table, teamColumn, beside], unhurriedMs);
    }
  }
  // The moved rows, including prompts, are still on the coordinator's disk.
  for (const table of missing) await run(client, dropLeftovers, [table], unhurriedMs);
  const after = await readDistributed(client);
  return Array.from(layouts, ([table, layout]) => {
    if (!after.has(table)) throw isWrong(table, 'distributed');
    return { table, layout, changed: !before.has(table) };
  });
}

const dropLeftovers = 'select truncate_local_data_after_distributing_table($1::regclass)';

async function refuseWithoutCitus(client: pg.Client, where: string): Promise<void> {
  const { rowCount } = await run(client, "select 1 from pg_extension where extname = 'citus'");
  if (rowCount !== 0) return;
  const known = await run(client, "select 1 from pg_available_extensions where name = 'citus'");
  throw new OperatorError(
    known.rowCount === 0
      ? `${where} is not a Citus cluster: its PostgreSQL does not have the "citus" extension.`
      : `${where} does not have the "citus" extension enabled. Run "create extension citus" as a superuser on every node.`,
  );
}

/** Every node must sync acknowledged data to disk. */
async function refuseUnsafeNodes(client: pg.Client): Promise<void> {
  const { rows } = await run(client, readFsync);
  for (const { nodeid, success, result } of rows) {
    const node = `Node ${String(nodeid)} of the cluster`;
    if (success !== true) throw new OperatorError(`${node} is not responding: ${String(result)}.`);
    if (result === 'off') {
      throw new OperatorError(
        `${node} runs with fsync = off, so a crash could lose acknowledged traces. Set fsync = on.`,
      );
    }
  }
}

const readFsync = "select nodeid, success, result from run_command_on_all_nodes('show fsync')";

// Citus also lists local tables with a foreign key to a reference table, as 'n' and 's'. They are not distributed yet, so skip them.
const readLayouts = `
  select logicalrelid::regclass::text as table, partmethod = 'h' as is_distributed, colocationid::text as colocation,
    case when partkey is not null then column_to_column_name(logicalrelid, partkey) end as column
  from pg_dist_partition
  where logicalrelid = any($1::regclass[]) and (partmethod = 'h' or repmodel = 't')`;

/** The tables that are already distributed. Fails if one is distributed in an unexpected way. */
async function readDistributed(client: pg.Client): Promise<Set<string>> {
  const { rows } = await run(client, readLayouts, [[...layouts.keys()]]);
  const found = new Set<string>();
  const colocations = new Set<unknown>();
  for (const row of rows) {
    const table = String(row['table']);
    const isDistributed = row['is_distributed'] === true;
    found.add(table);
    if (layouts.get(table) === 'on every node') {
      if (isDistributed) throw isWrong(table, 'a reference table');
      continue;
    }
    if (!isDistributed || row['column'] !== teamColumn) {
      throw isWrong(table, `distributed by ${teamColumn}`);
    }
    colocations.add(row['colocation']);
  }
  if (colocations.size > 1) throw isWrong(tablesByTeam.join(', '), 'co-located');
  return found;
}

function isWrong(table: string, expected: string): OperatorError {
  return new OperatorError(
    `Unexpected table layout: ${table} should be ${expected}. Nothing was moved.`,
  );
}

async function countPlaces(client: pg.Client): Promise<{ nodes: number; shards: number }> {
  const [counts] = (await run(client, readCounts, [tablesByTeam[0]])).rows;
  return { nodes: Number(counts?.['nodes']), shards: Number(counts?.['shards']) };
}

const readCounts = `
  select count(distinct (p.nodename, p.nodeport)) as nodes, count(*) as shards
  from pg_dist_shard s join pg_dist_shard_placement p using (shardid) where s.logicalrelid = to_regclass($1)`;

const lockNotAvailable = '55P03';

function explain(error: unknown, address: Address): unknown {
  if (error instanceof OperatorError) return error;
  if (stateOf(error) === lockNotAvailable) {
    return new OperatorError(
      `The tables in ${address.name} are in use. Stop the servers, then run the command again. Nothing was moved.`,
    );
  }
  return explainOpening(error, address);
}
