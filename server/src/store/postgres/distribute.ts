import pg from 'pg';
import { OperatorError } from '../../errors.ts';
import { checkServer } from './check-server.ts';
import { run } from './connection.ts';
import { migrate, migrationLock } from './migrate.ts';
import { explainOpening, placeOf } from './place.ts';
import type { Place } from './place.ts';
import { stateOf } from './postgres-errors.ts';
import { tablesByTeam, tablesOnEveryNode, teamColumn } from './tables.ts';

/** What became of a table, or what it was already. */
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

/**
 * Spreads the tables over the nodes of a Citus cluster, with what they hold. Safe to run again: what is as it should be is left alone.
 */
export async function distributePostgres(
  url: string,
  onTable: (table: string) => void,
): Promise<DistributeReport> {
  const place = placeOf(url);
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tracetally distribute',
    connectionTimeoutMillis: 10_000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    await checkServer(client, place.name);
    await migrate(client, place.name, false);
    return await distribute(client, place, onTable);
  } catch (error) {
    throw explain(error, place);
  } finally {
    await client.end().catch(() => {});
  }
}

async function distribute(
  client: pg.Client,
  { name }: Place,
  onTable: (table: string) => void,
): Promise<DistributeReport> {
  await refuseWithoutCitus(client, name);
  // Servers that migrate and other calls of this command wait, and writers of the tables are not waited for without end.
  await run(client, `set lock_timeout = '${lockSeconds}s'`);
  await run(client, 'select pg_advisory_lock($1)', [migrationLock]);
  await checkNodes(client);
  const tables: TableReport[] = [];
  for (const table of tablesOnEveryNode) {
    const isNew = (await layoutOf(client, table)).kind !== 'reference';
    if (isNew) {
      onTable(table);
      await run(client, 'select create_reference_table($1)', [table], unhurriedMs);
    }
    tables.push({ table, kind: 'on every node', isNew });
  }
  const [first, ...others] = tablesByTeam;
  for (const table of [first, ...others]) {
    const isNew = (await layoutOf(client, table)).kind !== 'distributed';
    if (isNew) {
      onTable(table);
      const besides = table === first ? 'none' : first;
      const values = [table, teamColumn, besides];
      await run(client, spreadByTeam, values, unhurriedMs);
    }
    tables.push({ table, kind: 'by team', isNew });
  }
  return { ...(await checkLayout(client)), tables };
}

const lockSeconds = 10;
const spreadByTeam = 'select create_distributed_table($1, $2, colocate_with => $3)';
/** It moves all that a table holds. */
const unhurriedMs = 2 ** 31 - 1;

async function refuseWithoutCitus(client: pg.Client, where: string): Promise<void> {
  const { rowCount } = await run(client, "select 1 from pg_extension where extname = 'citus'");
  if (rowCount !== 0) return;
  const known = await run(client, "select 1 from pg_available_extensions where name = 'citus'");
  throw new OperatorError(
    known.rowCount === 0
      ? `${where} is not a Citus cluster: its PostgreSQL has no extension "citus".`
      : `${where} has no extension "citus" yet. As a superuser, on every node: create extension citus.`,
  );
}

/** What a node acknowledges must be on its disk too. */
async function checkNodes(client: pg.Client): Promise<void> {
  const { rows } = await run(client, readFsync);
  for (const { nodeid, success, result } of rows) {
    const node = `Node ${String(nodeid)} of the cluster`;
    if (success !== true) throw new OperatorError(`${node} does not answer: ${String(result)}.`);
    if (result === 'off') {
      throw new OperatorError(
        `${node} runs with fsync = off: a crash could lose what it has acknowledged. Set fsync = on.`,
      );
    }
  }
}

const readFsync = "select nodeid, success, result from run_command_on_all_nodes('show fsync')";

interface Layout {
  kind: 'local' | 'reference' | 'distributed';
  column: string | null;
  colocation: string | null;
}

const readLayout = `
  select partmethod, repmodel, colocationid::text as colocation,
    case when partkey is not null then column_to_column_name(logicalrelid, partkey) end as column
  from pg_dist_partition where logicalrelid = to_regclass($1)`;

async function layoutOf(client: pg.Client, table: string): Promise<Layout> {
  const [row] = (await run(client, readLayout, [table])).rows;
  const kind =
    row?.['partmethod'] === 'h'
      ? 'distributed'
      : row?.['partmethod'] === 'n' && row['repmodel'] === 't'
        ? 'reference'
        : 'local';
  return {
    kind,
    column: (row?.['column'] ?? null) as string | null,
    colocation: (row?.['colocation'] ?? null) as string | null,
  };
}

/** Whatever made it so, now it must be right. */
async function checkLayout(client: pg.Client): Promise<{ nodes: number; shards: number }> {
  for (const table of tablesOnEveryNode) {
    const { kind } = await layoutOf(client, table);
    if (kind !== 'reference') throw isWrong(table, `a reference table, and is ${kind}`);
  }
  const groups = new Set<string | null>();
  for (const table of tablesByTeam) {
    const { kind, column, colocation } = await layoutOf(client, table);
    if (kind !== 'distributed') throw isWrong(table, `distributed, and is ${kind}`);
    if (column !== teamColumn)
      throw isWrong(table, `distributed by ${teamColumn}, and is by ${column}`);
    groups.add(colocation);
    if (groups.size > 1) throw isWrong(table, `co-located with ${tablesByTeam[0]}`);
  }
  const [counts] = (await run(client, readCounts, [tablesByTeam[0]])).rows;
  return { nodes: Number(counts?.['nodes']), shards: Number(counts?.['shards']) };
}

const readCounts = `
  select count(distinct (p.nodename, p.nodeport)) as nodes, count(*) as shards
  from pg_dist_shard s join pg_dist_shard_placement p using (shardid) where s.logicalrelid = to_regclass($1)`;

function isWrong(table: string, expected: string): OperatorError {
  return new OperatorError(
    `The table ${table} should be ${expected}. It was not made so by TraceTally; nothing was changed.`,
  );
}

const lockNotAvailable = '55P03';

function explain(error: unknown, place: Place): unknown {
  if (error instanceof OperatorError) return error;
  if (stateOf(error) === lockNotAvailable) {
    return new OperatorError(
      `The tables at ${place.name} are in use. Stop the servers, then distribute again: it goes on where it ended.`,
    );
  }
  return explainOpening(error, place);
}
