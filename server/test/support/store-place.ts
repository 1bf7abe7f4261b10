import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { Database } from '../../src/store/open-store.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';

/** The URL of the server that `global-postgres.ts` has started. Without it every store is a file. */
const postgresUrl = process.env['TEST_POSTGRES'];

/** The kind of store of the services in this test run. */
export const testStore: Database['kind'] = postgresUrl === undefined ? 'sqlite' : 'postgres';

/** A store that belongs to this folder, as `--database` names it; the same one each time. */
export async function databaseIn(folder: string): Promise<string> {
  if (postgresUrl === undefined) return `sqlite:${join(folder, 'tracetally.db')}`;
  const name = basename(folder);
  const url = new URL(postgresUrl);
  url.pathname = `/${name}`;
  try {
    await runSql({ kind: 'postgres', url: postgresUrl }, `create database "${name}"`);
  } catch (error) {
    const isThere = error instanceof pg.DatabaseError && error.code === '42P04';
    if (!isThere) throw error;
  }
  return url.href;
}

type Row = Record<string, unknown>;

/** One statement on a separate connection. */
export async function runSql(database: Database, text: string): Promise<Row[]> {
  if (database.kind === 'sqlite') {
    const beside = new DatabaseSync(database.path, { timeout: 5000 });
    try {
      return beside.prepare(text).all();
    } finally {
      beside.close();
    }
  }
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Where rollups, marks and lookups are. */
export function rollupPlace(database: Database): Database {
  if (database.kind !== 'sqlite') return database;
  return { kind: 'sqlite', path: rollupPathOf(database.path) };
}

/** Every byte of the store's files. Another process reads them: this one would drop SQLite's locks by closing the files. */
export async function readStoreBytes(database: Database): Promise<Buffer> {
  const folder = await folderOf(database);
  const files = ['-type', 'f', '!', '-name', '*-shm'];
  const { status, stdout } = spawnSync('find', [folder, ...files, '-exec', 'cat', '{}', '+'], {
    maxBuffer: 256 * 1024 * 1024,
  });
  assert.equal(status, 0, `the files in ${folder} cannot be read`);
  assert.ok(stdout.length > 0, `there are no files in ${folder}`);
  return stdout;
}

async function folderOf(database: Database): Promise<string> {
  if (database.kind === 'sqlite') return dirname(database.path);
  // What was committed may be in PostgreSQL's memory and log alone until then.
  await runSql(database, 'checkpoint');
  const [row] = await runSql(
    database,
    `select current_setting('data_directory') || '/base/' || oid as folder
     from pg_database where datname = current_database()`,
  );
  return String(row?.['folder']);
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** The same bytes with some of them changed, as a bad disk might. */
export function flipBytes(bytes: Uint8Array, at: number, count: number): Uint8Array {
  return bytes.map((byte, i) => (i >= at && i < at + count ? byte ^ 0x55 : byte));
}
