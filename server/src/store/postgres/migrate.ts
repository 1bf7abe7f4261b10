import type pg from 'pg';
import { OperatorError } from '../../errors.ts';
import { migrationsFolder } from '../../installation.ts';
import { limits } from '../../limits.ts';
import { newestSchema, pendingMigrations, readMigrations } from '../migrations.ts';
import type { Migration } from '../migrations.ts';
import { distributeNewTables } from './cluster.ts';
import { beginOnly, run } from './connection.ts';
import { stateOf } from './postgres-failures.ts';

const ours = readMigrations(migrationsFolder('postgres'));

/** "TTly" as a number. Servers that start at the same time wait for each other on this lock. */
export const migrationLock = 0x54546c79;

const unhurriedMs = limits.postgresUnhurriedMsMax;

const states = { tableExists: '42P07', notAllowed: '42501' };

/** Migrates the database to the newest schema in one transaction. If several servers start at once, one of them does it. */
export async function migrate(
  client: pg.ClientBase,
  where: string,
  mustExist: boolean,
  migrations: readonly Migration[] = ours,
): Promise<void> {
  const schema = await readSchema(client);
  if (schema === null && mustExist) {
    throw new OperatorError(`${where} has no TraceTally tables.`);
  }
  if (pendingMigrations(migrations, schema, where).length === 0) return;
  try {
    await run(client, beginOnly);
    await run(client, 'select pg_advisory_xact_lock($1)', [migrationLock], unhurriedMs);
    // Citus needs this to change reference and distributed tables in one transaction. Without Citus it has no effect.
    await run(client, "set local citus.multi_shard_modify_mode = 'sequential'");
    await changeSchema(client, where, migrations);
    await run(client, 'commit', [], unhurriedMs);
  } catch (error) {
    await run(client, 'rollback').catch(() => {});
    throw explain(error, where);
  }
}

async function changeSchema(
  client: pg.ClientBase,
  where: string,
  migrations: readonly Migration[],
): Promise<void> {
  // Another server may have migrated in the meantime.
  const schema = await readSchema(client);
  const pending = pendingMigrations(migrations, schema, where);
  if (pending.length === 0) return;
  if (schema === null) {
    await run(client, 'create table tracetally_schema (version integer not null)');
    await run(client, 'insert into tracetally_schema (version) values (0)');
  }
  for (const { sql } of pending) await run(client, sql, [], unhurriedMs);
  await run(client, 'update tracetally_schema set version = $1', [newestSchema(migrations)]);
  await distributeNewTables(client);
}

/**
 * Reads pg_class so that a table that another server has just created is found. After the wait for the lock, `to_regclass` alone
 * would return the old result.
 */
const isThere = `
  select exists (select 1 from pg_class where oid = to_regclass('tracetally_schema')) as there`;

/** Null if there is no store yet. */
async function readSchema(client: pg.ClientBase): Promise<number | null> {
  const { rows } = await run(client, isThere);
  if (rows[0]?.['there'] !== true) return null;
  const found = await run(client, 'select version from tracetally_schema');
  return (found.rows[0]?.['version'] ?? null) as number | null;
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
