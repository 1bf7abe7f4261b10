import type pg from 'pg';
import { OperatorError } from '../../errors.ts';
import { migrationsFolder } from '../../installation.ts';
import { limits } from '../../limits.ts';
import { readMigrations } from '../migrations.ts';
import type { UpgradeProgress } from '../store.ts';
import { distributeNewTables } from './cluster.ts';
import { abandon, connect, run } from './connection.ts';
import type { Begin } from './connection.ts';
import { hasOldTraces, moveOldTraces } from './move-traces.ts';
import { stateOf } from './postgres-failures.ts';

const migrations = readMigrations(migrationsFolder('postgres'));

/** "TTly" as a number. Servers that start at the same time wait for each other on this lock. */
export const migrationLock = 0x54546c79;

const unhurriedMs = limits.postgresUnhurriedMsMax;

const states = { tableExists: '42P07', notAllowed: '42501' };

/** What an upgrade needs besides the schema: connections for its batches, and who is told about them. */
export interface Upgrade {
  pool: pg.Pool;
  begin: Begin;
  onUpgrade(progress: UpgradeProgress): void;
}

/**
 * Migrates the database to the newest schema, then moves the rows of older tables in small transactions. If several servers start at
 * once, one of them does it; if it is interrupted, the next one continues.
 */
export async function migrate(
  client: pg.ClientBase,
  where: string,
  mustExist: boolean,
  upgrade: Upgrade,
): Promise<void> {
  const version = await readVersion(client);
  if (version === null && mustExist) {
    throw new OperatorError(`${where} has no TraceTally tables.`);
  }
  if (isCurrent(version, where) && !(await hasOldTraces(client))) return;
  const holder = await connect(upgrade.pool);
  try {
    // Another server may be migrating, which can take long. The lock is held by a transaction, since a pooler may give every transaction
    // another connection.
    await run(holder, 'begin; set local idle_in_transaction_session_timeout = 0');
    await run(holder, 'select pg_advisory_xact_lock($1)', [migrationLock], unhurriedMs);
    await changeSchema(client, where);
    if (await hasOldTraces(client)) await moveOldTraces(upgrade);
    await run(holder, 'commit');
    holder.release();
  } catch (error) {
    await abandon(holder, error);
    throw explain(error, where);
  }
}

async function changeSchema(client: pg.ClientBase, where: string): Promise<void> {
  await run(client, 'begin isolation level read committed');
  try {
    // Citus needs this to change reference and distributed tables in one transaction. Without Citus it has no effect.
    await run(client, "set local citus.multi_shard_modify_mode = 'sequential'");
    await bringUp(client, await readVersion(client), where);
    await run(client, 'commit', [], unhurriedMs);
  } catch (error) {
    await run(client, 'rollback').catch(() => {});
    throw error;
  }
}

async function bringUp(
  client: pg.ClientBase,
  version: number | null,
  where: string,
): Promise<void> {
  // Another server may have migrated in the meantime.
  if (isCurrent(version, where)) return;
  if (version === null) {
    await run(client, 'create table tracetally_schema (version integer not null)');
    await run(client, 'insert into tracetally_schema (version) values (0)');
  }
  for (const { sql } of migrations.slice(version ?? 0)) await run(client, sql, [], unhurriedMs);
  await run(client, 'update tracetally_schema set version = $1', [migrations.length]);
  await distributeNewTables(client);
}

/**
 * Reads pg_class so that a table that another server has just created is found. After the wait for the lock, `to_regclass` alone
 * would return the old result.
 */
const isThere = `
  select exists (select 1 from pg_class where oid = to_regclass('tracetally_schema')) as there`;

/** Null if there is no store yet. */
async function readVersion(client: pg.ClientBase): Promise<number | null> {
  const { rows } = await run(client, isThere);
  if (rows[0]?.['there'] !== true) return null;
  const found = await run(client, 'select version from tracetally_schema');
  return (found.rows[0]?.['version'] ?? null) as number | null;
}

function isCurrent(version: number | null, where: string): boolean {
  if ((version ?? 0) <= migrations.length) return version === migrations.length;
  throw new OperatorError(
    `${where} was written by a newer TraceTally (schema ${version}; this version supports up to ${migrations.length}). ` +
      'Use that version or a newer one. The database was not changed.',
  );
}

function explain(error: unknown, where: string): unknown {
  const state = stateOf(error);
  if (state === states.tableExists) {
    return new OperatorError(
      `${where} has tables of another application with names that TraceTally needs. Use a separate database.`,
    );
  }
  if (state === states.notAllowed) {
    return new OperatorError(`The database user is not allowed to create tables in ${where}.`);
  }
  return error;
}
