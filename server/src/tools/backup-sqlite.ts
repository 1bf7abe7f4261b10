import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { OperatorError, messageOf } from '../errors.ts';
import { limits } from '../limits.ts';
import { damageOf } from '../store/sqlite/auditor.ts';
import { openReading } from '../store/sqlite/connection.ts';
import { realDatabasePath, refuseSecondName } from '../store/sqlite/database-path.ts';
import { refuseForeignFile } from '../store/sqlite/migrate.ts';
import { sessionTables } from '../store/sign-in.ts';
import { DamageList } from './finding-list.ts';

export interface BackupReport {
  file: string;
  bytes: number;
  traces: number;
  /** Traces with damaged payloads, in the database and therefore in the backup; empty if there are none. */
  damaged: readonly string[];
}

export interface BackupProgress {
  onCopied(bytes: number, total: number): void;
  onChecked(traces: number, total: number): void;
}

/** More pages than a file can have, so that one step copies everything: with smaller steps every commit would restart the copy. */
const allPages = 2 ** 31 - 1;

/**
 * Copies a consistent snapshot of the file while a server may be writing. The copy is checked and synced before it is renamed, so a
 * file with the final name is always a complete backup. Damaged traces are copied as they are, and reported.
 */
export async function backupSqlite(
  from: string,
  to: string,
  progress: BackupProgress,
): Promise<BackupReport> {
  const file = resolve(to);
  if (!existsSync(from)) throw new OperatorError(`The database ${from} does not exist.`);
  const path = realDatabasePath(from);
  refuseSecondName(path);
  if (existsSync(file)) throw new OperatorError(`${file} already exists. Choose another name.`);
  if (!existsSync(dirname(file)))
    throw new OperatorError(`The folder ${dirname(file)} does not exist.`);
  const part = `${file}.part`;
  try {
    refuseForeignFile(path);
    removePart(part);
    await copyPages(path, part, progress);
    const checked = check(part, progress);
    removeSessions(part);
    sync(part);
    renameSync(part, file);
    sync(dirname(file));
    return { file, bytes: statSync(file).size, ...checked };
  } catch (error) {
    removePart(part);
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`Cannot back up ${path} to ${file}: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

async function copyPages(path: string, part: string, { onCopied }: BackupProgress): Promise<void> {
  using db = openReading(path);
  const sized = db.prepare(
    'select page_count * page_size as bytes from pragma_page_count, pragma_page_size',
  );
  const total = Number(sized.get()?.['bytes']);
  const watch = setInterval(() => {
    onCopied(Math.min(total, statSync(part, { throwIfNoEntry: false })?.size ?? 0), total);
  }, limits.backupWatchMs);
  try {
    await backup(db, part, { rate: allPages });
    onCopied(total, total);
  } finally {
    clearInterval(watch);
  }
}

/** No other process uses the file yet, so it is opened without log and shared-memory files. */
function check(part: string, progress: BackupProgress): Pick<BackupReport, 'traces' | 'damaged'> {
  const url = pathToFileURL(part);
  url.searchParams.set('immutable', '1');
  using db = new DatabaseSync(url, { readOnly: true });
  const [finding] = db.prepare('pragma quick_check(1)').all();
  if (finding?.['quick_check'] !== 'ok') {
    throw new Error(`the copy is damaged: ${String(finding?.['quick_check'])}`);
  }
  const counted = db.prepare(
    'select coalesce(sum(last_seq - first_seq + 1), 0) as traces from team_counters',
  );
  const traces = Number(counted.get()?.['traces']);
  return { traces, damaged: findDamage(db, (done) => progress.onChecked(done, traces)) };
}

/** Decodes every payload, one trace at a time. */
function findDamage(db: DatabaseSync, onChecked: (traces: number) => void): string[] {
  let checked = 0;
  return db
    .prepare('select no, name from teams order by name')
    .all()
    .flatMap(({ no = 0, name }) => {
      const list = new DamageList();
      for (const trace of damageOf(db, Number(no))) {
        list.check(trace);
        checked += 1;
        if (checked % limits.auditChunkRows === 0) onChecked(checked);
      }
      return list.sentences().map((sentence) => `team ${String(name)}: ${sentence}`);
    });
}

/**
 * Anyone with the session secret could forge a session of any API key, and backups are kept in many places. So the secret is removed
 * from the copy and its bytes are overwritten.
 */
function removeSessions(part: string): void {
  using db = new DatabaseSync(part);
  // Without a log file, so that deleted data is really removed from the backup file.
  db.exec('pragma journal_mode = delete');
  db.exec('pragma secure_delete = on');
  for (const table of sessionTables) db.exec(`delete from ${table}`);
}

function sync(path: string): void {
  const handle = openSync(path, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

function removePart(part: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm'])
    rmSync(`${part}${suffix}`, { force: true });
}
