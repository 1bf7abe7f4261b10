import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { isBusy } from './sqlite-failures.ts';

/**
 * One server a file. The lock is SQLite's own, on a small file beside the database: the system frees it when the
 * process ends, however it ends. The command line takes it only for the moment of a migration, so it works beside a server.
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
