import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { OperatorError, messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { openReading } from './connection.ts';
import { refuseForeignFile } from './migrate.ts';
import { sessionTables } from './session-directory.ts';

export interface BackupReport {
  file: string;
  bytes: number;
  traces: number;
}

/** More pages than a file can have: in small steps a copy begins anew with every commit and never ends beside a writer. */
const allPages = 2 ** 31 - 1;

/**
 * Copies the file as it is at one moment, beside a server that goes on writing. The copy is checked and on disk before it has its
 * name, so a file of that name is a whole backup.
 */
export async function backupSqlite(
  path: string,
  to: string,
  onProgress: (bytes: number, total: number) => void,
): Promise<BackupReport> {
  const file = resolve(to);
  if (!existsSync(path)) throw new OperatorError(`There is no database ${path}.`);
  if (existsSync(file)) throw new OperatorError(`${file} is there already. Choose another name.`);
  if (!existsSync(dirname(file))) throw new OperatorError(`There is no folder ${dirname(file)}.`);
  const part = `${file}.part`;
  try {
    refuseForeignFile(path);
    removePart(part);
    await copyPages(path, part, onProgress);
    const traces = check(part);
    removeSessions(part);
    sync(part);
    renameSync(part, file);
    sync(dirname(file));
    return { file, bytes: statSync(file).size, traces };
  } catch (error) {
    removePart(part);
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`Cannot back up ${path} to ${file}: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

async function copyPages(
  path: string,
  part: string,
  onProgress: (bytes: number, total: number) => void,
): Promise<void> {
  using db = openReading(path);
  const total = pragma(db, 'page_count') * pragma(db, 'page_size');
  const watch = setInterval(() => {
    onProgress(Math.min(total, statSync(part, { throwIfNoEntry: false })?.size ?? 0), total);
  }, limits.backupWatchMs);
  try {
    await backup(db, part, { rate: allPages });
    onProgress(total, total);
  } finally {
    clearInterval(watch);
  }
}

/** Answers how many traces it has. Nobody else knows the file, so it is opened without the files that go with a shared one. */
function check(part: string): number {
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
  return Number(counted.get()?.['traces']);
}

/**
 * The session secret is enough to forge a session of any API key, and backups are kept in many places. So the copy does not keep it:
 * its bytes are overwritten.
 */
function removeSessions(part: string): void {
  using db = new DatabaseSync(part);
  db.exec('pragma secure_delete = on');
  const isThere = db.prepare("select 1 from sqlite_schema where type = 'table' and name = ?");
  for (const table of sessionTables) {
    // A file of an older schema has no such table.
    if (isThere.get(table)) db.exec(`delete from ${table}`);
  }
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`pragma ${name}`).get()?.[name]);
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
