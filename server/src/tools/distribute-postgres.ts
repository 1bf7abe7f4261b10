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

/** How a table is distributed, and whether this run changed it. */
export interface TableReport {
  table: string;
  kind: 'on every node' | 'by team';
  isNew: boolean;
}

export interface DistributeReport {
  nodes: number;
  shards: number;
  tables: TableReport[];
}

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
    // Opening it migrates the tables.
    await (await openPostgresStore({ url, clock: { kind: 'system' }, role: 'tool' })).close();
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

async function distribute(
  client: pg.Client,
  onTable: (table: string) => void,
): Promise<TableReport[]> {
  await run(client, `set local lock_timeout = ${limits.postgresLockMsMax}`);
  // Migrating servers and other runs of this command wait for this lock.
  await run(client, 'select pg_advisory_xact_lock($1)', [migrationLock]);
  const [first, ...others] = tablesByTeam;
  const before = await readLayouts(client);
  const missing = [...tablesOnEveryNode, ...tablesByTeam].filter((table) => !before.has(table));
  if (missing.length > 0) {
    // All tables at once and first, so that no transaction of a server is interrupted halfway.
    await run(client, `lock table ${missing.join(', ')} in access exclusive mode`);
  }
  const reports: TableReport[] = [];
  for (const table of tablesOnEveryNode) {
    const isNew = missing.includes(table);
    if (isNew) {
      onTable(table);
      await run(client, 'select create_reference_table($1)', [table], unhurriedMs);
    }
    reports.push({ table, kind: 'on every node', isNew });
  }
  for (const table of [first, ...others]) {
    const isNew = missing.includes(table);
    if (isNew) {
      onTable(table);
      const beside = table === first ? 'none' : first;
      await run(client, createByTeam, [table, teamColumn, beside], unhurriedMs);
    }
    reports.push({ table, kind: 'by team', isNew });
  }
  // The moved rows, including prompts, are still on the coordinator's disk.
  for (const table of missing) await run(client, dropLeftovers, [table], unhurriedMs);
  refuseWrongLayout(await readLayouts(client));
  return reports;
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

interface Layout {
  kind: 'reference' | 'distributed';
  column: string | null;
  colocation: string;
}

// Citus also lists local tables with a foreign key to a reference table, as 'n' and 's'. They are not distributed yet, so skip them.
const readLayout = `
  select logicalrelid::regclass::text as table, partmethod = 'h' as is_distributed, colocationid::text as colocation,
    case when partkey is not null then column_to_column_name(logicalrelid, partkey) end as column
  from pg_dist_partition
  where logicalrelid = any($1::regclass[]) and (partmethod = 'h' or repmodel = 't')`;

/** The tables that are already distributed. Fails if one is distributed in an unexpected way. */
async function readLayouts(client: pg.Client): Promise<Map<string, Layout>> {
  const { rows } = await run(client, readLayout, [[...tablesOnEveryNode, ...tablesByTeam]]);
  const layouts = new Map(
    rows.map((row): [string, Layout] => [
      row['table'] as string,
      {
        kind: row['is_distributed'] === true ? 'distributed' : 'reference',
        column: row['column'] as string | null,
        colocation: row['colocation'] as string,
      },
    ]),
  );
  refuseForeignLayout(layouts);
  return layouts;
}

function refuseForeignLayout(layouts: ReadonlyMap<string, Layout>): void {
  const groups = new Set<string>();
  for (const [table, { kind, column, colocation }] of layouts) {
    const isOnEveryNode = (tablesOnEveryNode as readonly string[]).includes(table);
    if (isOnEveryNode && kind !== 'reference') throw isWrong(table, 'a reference table');
    if (isOnEveryNode) continue;
    if (kind !== 'distributed' || column !== teamColumn) {
      throw isWrong(table, `distributed by ${teamColumn}`);
    }
    groups.add(colocation);
  }
  if (groups.size > 1) throw isWrong(tablesByTeam.join(', '), 'co-located');
}

/** Fails unless all tables are distributed. */
function refuseWrongLayout(layouts: ReadonlyMap<string, Layout>): void {
  for (const table of [...tablesOnEveryNode, ...tablesByTeam]) {
    if (!layouts.has(table)) throw isWrong(table, 'distributed');
  }
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
      `The tables at ${address.name} are in use. Stop the servers, then run the command again. Nothing was moved.`,
    );
  }
  return explainOpening(error, address);
}
