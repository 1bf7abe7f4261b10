import { existsSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { migrationsFolder } from '../../installation.ts';
import { limits } from '../../limits.ts';
import { newestSchema, readMigrations } from '../migrations.ts';
import { inTransaction, openReading, withoutWaiting } from './connection.ts';
import { holdServerLock } from './server-lock.ts';
import { isDamaged } from './sqlite-failures.ts';

/**
 * The rollup file lies next to the database and holds everything that is derived from its traces. SQLite allows one writer per file, so rolls
 * in a file of their own never make a write wait. The file can be deleted while no server runs, so it is not synced at each commit.
 */
export function rollupPathOf(path: string): string {
  return path.endsWith('.db') ? `${path.slice(0, -3)}-rollups.db` : `${path}-rollups`;
}

/** "TTlr" in the file header distinguishes a rollup file from other SQLite databases. */
const rollupApplicationId = 0x54546c72;
const ours = readMigrations(migrationsFolder('sqlite-rollups'));

/** Creates the file if it is missing, damaged, of another schema or of another database. Only the holder of the server lock may call it. */
export function prepareRollupFile(path: string): void {
  const rollupPath = rollupPathOf(path);
  if (isUsable(path)) return;
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${rollupPath}${suffix}`, { force: true });
  using db = new DatabaseSync(rollupPath, { timeout: limits.busyTimeoutMs });
  db.exec('pragma journal_mode = wal');
  inTransaction(db, () => {
    for (const { sql } of ours) db.exec(sql);
    db.prepare('insert into rollup_store (id) values (?)').run(storeIdOf(path));
    db.exec(`pragma application_id = ${rollupApplicationId}`);
    db.exec(`pragma user_version = ${newestSchema(ours)}`);
  });
}

/** For a tool: a server has the file already, so it is only made if none is running. */
export function ensureRollupFile(path: string, holdsLock: boolean): void {
  if (isUsable(path)) return;
  const release = holdsLock ? null : holdServerLock(path);
  try {
    prepareRollupFile(path);
  } finally {
    release?.();
  }
}

/** Whether the file exists and belongs to this database. Throws if it is a database of something else, which must not be removed. */
function isUsable(path: string): boolean {
  const rollupPath = rollupPathOf(path);
  if (!existsSync(rollupPath)) return false;
  try {
    using db = openReading(rollupPath);
    const read = (pragma: string): unknown => db.prepare(`pragma ${pragma}`).get()?.[pragma];
    const isEmpty = db.prepare('select count(*) as n from sqlite_schema').get()?.['n'] === 0;
    if (!isEmpty && read('application_id') !== rollupApplicationId) {
      throw new OperatorError(
        `${rollupPath} is an SQLite database, but not a rollup file of TraceTally. It was not changed. ` +
          'Rollups are stored under this name, so move the file or choose another name with --database.',
      );
    }
    if (isEmpty || read('user_version') !== newestSchema(ours)) return false;
    return db.prepare('select id from rollup_store').get()?.['id'] === storeIdOf(path);
  } catch (error) {
    if (isDamaged(error)) return false;
    throw error;
  }
}

function storeIdOf(path: string): string {
  using db = openReading(path);
  return db.prepare('select id from store_identity').get()?.['id'] as string;
}

/** After damage was found: the next server builds the file again, and no process opens it before that. */
export function giveUpRollups(rollups: DatabaseSync): void {
  rollups.exec('pragma user_version = 0');
}

/** Opens the rollup file for writing. A power failure may undo its last commits, but does not damage it. */
export function openRollupWriting(path: string): DatabaseSync {
  const db = new DatabaseSync(rollupPathOf(path), { timeout: limits.busyTimeoutMs });
  db.exec('pragma synchronous = normal');
  return db;
}

/** With an empty log, so that the file alone holds everything. Another process may be reading it: then the log stays. */
export function closeRollups(rollups: DatabaseSync): void {
  try {
    withoutWaiting(rollups, () => rollups.exec('pragma wal_checkpoint(truncate)'));
  } catch {
    // The next process reads the log.
  }
  rollups.close();
}

/**
 * Opens both files for reading. Without a usable rollup file its tables are empty, so that answers come from the traces alone. Names of tables
 * are different in both files.
 */
export function openReadingBoth(path: string): DatabaseSync {
  const db = openReading(path);
  if (isUsable(path)) attach(db, path);
  else for (const { sql } of ours) db.exec(asTemporary(sql));
  return db;
}

/** After the file was made. */
export function attachNewRollups(db: DatabaseSync, path: string): void {
  if (hasSchema(db, 'rollup_file')) return;
  for (const { sql } of ours) {
    for (const [, name] of sql.matchAll(/^create table (\w+)/gm))
      db.exec(`drop table temp.${name}`);
  }
  attach(db, path);
}

function attach(db: DatabaseSync, path: string): void {
  db.prepare('attach ? as rollup_file').run(rollupPathOf(path));
}

function asTemporary(sql: string): string {
  return sql
    .replaceAll(/^create table/gm, 'create temp table')
    .replaceAll(/^create unique index .*$/gm, '');
}

export function hasSchema(db: DatabaseSync, name: string): boolean {
  return db.prepare('select 1 from pragma_database_list where name = ?').get(name) !== undefined;
}
