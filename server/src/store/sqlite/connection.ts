import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { isBusy } from './sqlite-failures.ts';

/** "TTly" in the file's header tells our files from other SQLite databases. */
export const applicationId = 0x54546c79;

/** 3.51.3 mended a bug by which a reset of the WAL could lose committed data. */
const oldestSqlite = [3, 51, 3] as const;

/** A connection that writes. Every setting that durability rests on is set here, and nowhere else. */
export function openWriting(path: string): DatabaseSync {
  refuseOldSqlite();
  const db = new DatabaseSync(path, {
    timeout: limits.busyTimeoutMs,
    enableForeignKeyConstraints: true,
  });
  // FULL syncs the WAL at each commit. NORMAL would lose acknowledged traces in a power cut.
  db.exec('pragma synchronous = full');
  const { journal_mode: mode } = db.prepare('pragma journal_mode = wal').get() ?? {};
  if (mode !== 'wal') {
    db.close();
    throw new OperatorError(
      `${path} cannot be opened in WAL mode. Is it on a network file system?`,
    );
  }
  return db;
}

/** A connection that only reads. */
export function openReading(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: limits.busyTimeoutMs });
}

/**
 * Runs the work in one transaction. IMMEDIATE takes the write lock at once: a transaction that begins by reading could
 * fail halfway when another process has written meanwhile.
 */
export function inTransaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('begin immediate');
  try {
    const result = work();
    db.exec('commit');
    return result;
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

/** Runs the work without waiting for a lock that another process holds: it fails at once. */
export function withoutWaiting(db: DatabaseSync, work: () => void): void {
  db.exec('pragma busy_timeout = 0');
  try {
    work();
  } finally {
    db.exec(`pragma busy_timeout = ${limits.busyTimeoutMs}`);
  }
}

/**
 * Runs one short transaction on the main thread of a server, without waiting for the lock there: the writer may hold it until this very
 * thread sends it the rest of its batch.
 */
export async function retryWhileBusy<T>(db: DatabaseSync, work: () => T): Promise<T> {
  const untilMs = performance.now() + limits.busyTimeoutMs;
  for (;;) {
    try {
      let result: { value: T } | undefined;
      withoutWaiting(db, () => (result = { value: inTransaction(db, work) }));
      if (result) return result.value;
    } catch (error) {
      if (!isBusy(error) || performance.now() > untilMs) throw error;
    }
    await delay(limits.busyRetryMs);
  }
}

/** A full disk has already rolled back by itself. */
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
