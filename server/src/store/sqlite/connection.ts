import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { isBusy } from './sqlite-failures.ts';

/** "TTly" in the file header distinguishes our files from other SQLite databases. */
export const applicationId = 0x54546c79;

/** 3.51.3 fixed a bug that could lose committed data when the WAL is reset. */
const oldestSqlite = [3, 51, 3] as const;

/** FULL syncs the WAL at each commit. NORMAL would lose acknowledged traces in a power failure. */
const syncEachCommit = 'pragma synchronous = full';

/** Opens a connection for writing. All settings that durability depends on are set here. */
export function openWriting(path: string): DatabaseSync {
  refuseOldSqlite();
  const db = new DatabaseSync(path, {
    timeout: limits.busyTimeoutMs,
    enableForeignKeyConstraints: true,
  });
  db.exec(syncEachCommit);
  const { journal_mode: mode } = db.prepare('pragma journal_mode = wal').get() ?? {};
  if (mode !== 'wal') {
    db.close();
    throw new OperatorError(
      `${path} cannot be opened in WAL mode. Is it on a network file system?`,
    );
  }
  return db;
}

/** Opens a read-only connection. */
export function openReading(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: limits.busyTimeoutMs });
}

/**
 * Runs the work in one transaction. IMMEDIATE takes the write lock at the start: a transaction that starts with a read could
 * fail later if another process has written in the meantime.
 */
export function inTransaction<T>(db: DatabaseSync, work: () => T, begin = 'begin immediate'): T {
  db.exec(begin);
  try {
    const result = work();
    db.exec('commit');
    return result;
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

/** Runs the work without waiting for locks: it fails immediately if another process holds one. */
export function withoutWaiting(db: DatabaseSync, work: () => void): void {
  db.exec('pragma busy_timeout = 0');
  try {
    work();
  } finally {
    db.exec(`pragma busy_timeout = ${limits.busyTimeoutMs}`);
  }
}

/**
 * Runs one short transaction on the main thread of a server. It retries instead of blocking on the lock, since the writer may hold
 * the lock until the main thread sends it the rest of its batch.
 */
export async function retryWhileBusy<T>(
  db: DatabaseSync,
  work: () => T,
  transaction: typeof inTransaction = inTransaction,
): Promise<T> {
  const untilMs = performance.now() + limits.busyTimeoutMs;
  for (;;) {
    try {
      let result: { value: T } | undefined;
      withoutWaiting(db, () => (result = { value: transaction(db, work) }));
      if (result) return result.value;
    } catch (error) {
      if (!isBusy(error) || performance.now() > untilMs) throw error;
    }
    await delay(limits.busyRetryMs);
  }
}

/** If the disk is full, SQLite has already rolled back. */
export function rollBack(db: DatabaseSync): void {
  if (db.isTransaction) db.exec('rollback');
}

function refuseOldSqlite(): void {
  const version = process.versions.sqlite ?? '0.0.0';
  const parts = version.split('.').map(Number);
  for (const [i, oldest] of oldestSqlite.entries()) {
    const part = parts[i] ?? 0;
    if (part > oldest) return;
    if (part < oldest) {
      throw new OperatorError(
        `SQLite ${version} is too old; TraceTally needs ${oldestSqlite.join('.')} or newer. Use the Node.js version that this project pins.`,
      );
    }
  }
}
