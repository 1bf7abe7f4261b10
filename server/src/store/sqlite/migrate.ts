import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { readMigrations as readFolder } from '../migrations.ts';
import type { Migration } from '../migrations.ts';
import { applicationId, inTransaction, openReading } from './connection.ts';
import { holdServerLock } from './server-lock.ts';

const folder = new URL('../../../migrations/sqlite/', import.meta.url);

export function readMigrations(): Migration[] {
  return readFolder(folder);
}

/** Refuses a file that is not ours to open. It is only read, so that it stays as it is. */
export function refuseForeignFile(path: string): void {
  if (!existsSync(path)) return;
  using db = openReading(path);
  const newest = readMigrations().length;
  const version = readVersion(db);
  const isEmpty = db.prepare('select count(*) as n from sqlite_schema').get()?.['n'] === 0;
  if (!isEmpty && pragmaNumber(db, 'application_id') !== applicationId) {
    throw new OperatorError(
      `${path} is a SQLite database, but not a TraceTally database. It was not changed.`,
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
 * Brings the file to the newest schema, all steps in one transaction. No server may run on it meanwhile, so the caller
 * either holds the server's lock or it is taken here.
 */
export function migrate(db: DatabaseSync, path: string, holdsLock: boolean): void {
  const migrations = readMigrations();
  if (readVersion(db) === migrations.length) return;
  const release = holdsLock ? null : holdServerLock(path);
  try {
    inTransaction(db, () => {
      const version = readVersion(db);
      for (const migration of migrations.slice(version)) db.exec(migration.sql);
      db.exec(`pragma application_id = ${applicationId}`);
      db.exec(`pragma user_version = ${migrations.length}`);
    });
  } finally {
    release?.();
  }
}

function readVersion(db: DatabaseSync): number {
  return pragmaNumber(db, 'user_version');
}

function pragmaNumber(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`pragma ${name}`).get()?.[name] ?? 0);
}
