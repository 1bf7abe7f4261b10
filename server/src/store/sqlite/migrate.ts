import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { migrationsFolder } from '../../installation.ts';
import { newestSchema, pendingMigrations, readMigrations } from '../migrations.ts';
import type { Migration } from '../migrations.ts';
import { applicationId, inTransaction, openReading } from './connection.ts';
import { holdServerLock } from './server-lock.ts';

const ours = readMigrations(migrationsFolder('sqlite'));

/** Rejects a file that is not a TraceTally database or has another schema. Opens it read-only, so that it is not changed. */
export function refuseForeignFile(path: string): void {
  if (!existsSync(path)) return;
  using db = openReading(path);
  if (readSchema(db) !== null && pragmaNumber(db, 'application_id') !== applicationId) {
    throw new OperatorError(
      `${path} is an SQLite database, but not a TraceTally database. It was not changed.`,
    );
  }
  pendingMigrations(ours, readSchema(db), path);
}

/**
 * Migrates the file to the newest schema in one transaction. No server may use the file at the same time, so the server lock is taken here
 * unless the caller holds it.
 */
export function migrate(
  db: DatabaseSync,
  path: string,
  holdsLock: boolean,
  migrations: readonly Migration[] = ours,
): void {
  if (pendingMigrations(migrations, readSchema(db), path).length === 0) return;
  const release = holdsLock ? null : holdServerLock(path);
  try {
    inTransaction(db, () => {
      // Another process may have migrated in the meantime.
      for (const { sql } of pendingMigrations(migrations, readSchema(db), path)) db.exec(sql);
      db.exec(`pragma application_id = ${applicationId}`);
      db.exec(`pragma user_version = ${newestSchema(migrations)}`);
    });
  } finally {
    release?.();
  }
}

/** Null if the file is empty. */
function readSchema(db: DatabaseSync): number | null {
  const isEmpty = db.prepare('select 1 from sqlite_schema limit 1').get() === undefined;
  return isEmpty ? null : pragmaNumber(db, 'user_version');
}

function pragmaNumber(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`pragma ${name}`).get()?.[name] ?? 0);
}
