import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { OperatorError, messageOf } from '../../errors.ts';
import { migrationsFolder } from '../../installation.ts';
import { readMigrations as readFolder } from '../migrations.ts';
import type { Migration } from '../migrations.ts';
import type { UpgradeProgress } from '../store.ts';
import { applicationId, inTransaction, openReading } from './connection.ts';
import { isMovePending, moveOldTraces } from './move-old-traces.ts';
import { holdServerLock } from './server-lock.ts';

export function readMigrations(): Migration[] {
  return readFolder(migrationsFolder('sqlite'));
}

/** Rejects a file that is not a TraceTally database or has a newer schema. Opens it read-only, so that it is not changed. */
export function refuseForeignFile(path: string): void {
  if (!existsSync(path)) return;
  using db = openReading(path);
  const newest = readMigrations().length;
  const version = readVersion(db);
  const isEmpty = db.prepare('select count(*) as n from sqlite_schema').get()?.['n'] === 0;
  if (!isEmpty && pragmaNumber(db, 'application_id') !== applicationId) {
    throw new OperatorError(
      `${path} is an SQLite database, but not a TraceTally database. It was not changed.`,
    );
  }
  if (version > newest) {
    throw new OperatorError(
      `${path} was written by a newer TraceTally (schema ${version}; this version supports up to ${newest}). ` +
        'Use that version or a newer one. The file was not changed.',
    );
  }
}

/**
 * Migrates the file to the newest schema: the tables in one transaction, then what they contain in short ones, so that an interrupted
 * upgrade continues. No server may use the file at the same time, so the server lock is taken here unless the caller holds it. An older
 * version refuses the file from the first transaction on.
 */
export function migrate(
  db: DatabaseSync,
  path: string,
  holdsLock: boolean,
  onProgress?: (progress: UpgradeProgress) => void,
): void {
  const migrations = readMigrations();
  if (readVersion(db) === migrations.length && !isMovePending(db)) return;
  const release = holdsLock ? null : holdServerLock(path);
  try {
    if (readVersion(db) > 0 && readVersion(db) < migrations.length) refuseDamagedFile(db, path);
    inTransaction(db, () => {
      const version = readVersion(db);
      for (const migration of migrations.slice(version)) db.exec(migration.sql);
      db.exec(`pragma application_id = ${applicationId}`);
      db.exec(`pragma user_version = ${migrations.length}`);
    });
    moveOldTraces(db, onProgress);
  } finally {
    release?.();
  }
}

/** There is no way back after the first transaction, and a damaged page would stop the move of the traces at every start. */
function refuseDamagedFile(db: DatabaseSync, path: string): void {
  const problem = problemOf(db);
  if (problem === null) return;
  throw new OperatorError(
    `${path} is damaged, so it cannot be upgraded (${problem}). It was not changed: the version that wrote it can still read the rest. ` +
      'Restore a backup, or recover the file with the sqlite3 command ".recover".',
  );
}

/** The first problem that SQLite finds in the file. */
function problemOf(db: DatabaseSync): string | null {
  try {
    const found = String(db.prepare('pragma quick_check(1)').get()?.['quick_check']);
    return found === 'ok' ? null : found.replaceAll(/\s+/g, ' ');
  } catch (error) {
    return messageOf(error);
  }
}

function readVersion(db: DatabaseSync): number {
  return pragmaNumber(db, 'user_version');
}

function pragmaNumber(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`pragma ${name}`).get()?.[name] ?? 0);
}
