import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { isBusy } from './sqlite-errors.ts';

/**
 * One server a file. The lock is SQLite's own, on a small file beside the database: the system frees it when the
 * process ends, however it ends. The command line does not take it, so it works beside a server.
 */
export function holdServerLock(path: string): () => void {
  const db = new DatabaseSync(`${path}.lock`, { timeout: 0 });
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
