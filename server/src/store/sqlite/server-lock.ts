import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { isBusy } from './sqlite-failures.ts';

/**
 * Allows one server per file. It is a SQLite lock on a small file next to the database, so the system releases it however the
 * process ends. Commands take it only during a migration, so they can run at the same time as a server.
 */
export function holdServerLock(path: string): () => void {
  const db = new DatabaseSync(`${path}.lock`, { timeout: limits.lockTimeoutMs });
  try {
    db.exec('pragma locking_mode = exclusive');
    db.exec('begin exclusive');
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw new OperatorError(
      `Another TraceTally server is using ${path}. Stop it first, or choose another file with --database.`,
    );
  }
  return () => db.close();
}
