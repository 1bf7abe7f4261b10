import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { readMigrations } from '../../src/store/migrations.ts';
import { migrate as migratePostgres } from '../../src/store/postgres/migrate.ts';
import { openWriting } from '../../src/store/sqlite/connection.ts';
import { migrate as migrateFile } from '../../src/store/sqlite/migrate.ts';
import { usePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';

const postgres = usePostgres();
const folder = temporaryFolder();
after(() => folder.remove());

const texts = [
  'create table first (value integer not null);\ninsert into first values (1);',
  'create table second (value integer not null);\ninsert into second select value + 1 from first;',
];

function migrationsOf(name: string, ...sql: string[]) {
  const path = join(folder.path, name);
  mkdirSync(path);
  for (const [i, text] of sql.entries()) writeFileSync(join(path, `000${i + 1}_x.sql`), text);
  return readMigrations(pathToFileURL(`${path}/`));
}

const both = migrationsOf('both', ...texts);
const [old, changed] = [
  migrationsOf('old', texts[0] ?? ''),
  migrationsOf('changed', `${texts[0]} create table more (value integer);`, texts[1] ?? ''),
];

test('a schema is known by its statements, not by its comments', () => {
  const commented = migrationsOf('commented', `-- A comment.\n${texts[0]}`, texts[1] ?? '');
  assert.deepEqual(
    commented.map(({ schema }) => schema),
    both.map(({ schema }) => schema),
  );
  assert.equal(old[0]?.schema, both[0]?.schema);
  assert.equal(new Set([...both, ...changed].map(({ schema }) => schema)).size, 4);
});

/** What every runner does with a new store, one of an older schema and one of another schema. */
async function assertMigrates(
  migrate: (migrations: typeof both) => Promise<void> | void,
  valuesOf: (table: string) => Promise<unknown[]> | unknown[],
): Promise<void> {
  await migrate(old);
  assert.deepEqual(await valuesOf('first'), [1]);
  for (let i = 0; i < 2; i++) {
    await migrate(both);
    assert.deepEqual([await valuesOf('first'), await valuesOf('second')], [[1], [2]]);
  }
  for (const others of [old, changed]) {
    await assert.rejects(async () => migrate(others), /written by another version of TraceTally/);
  }
  assert.deepEqual([await valuesOf('first'), await valuesOf('second')], [[1], [2]]);
}

test('a file of an older schema is migrated once, and one of another schema is refused', async () => {
  const path = join(folder.path, 'store.db');
  using db = openWriting(path);
  await assertMigrates(
    (migrations) => migrateFile(db, path, false, migrations),
    (table) =>
      db
        .prepare(`select value from ${table}`)
        .all()
        .map(({ value }) => value),
  );
});

test('so is a PostgreSQL database', async () => {
  const client = new pg.Client({ connectionString: await postgres.createDatabase() });
  await client.connect();
  try {
    await assertMigrates(
      (migrations) => migratePostgres(client, 'here', false, migrations),
      async (table) => {
        const { rows } = await client.query<{ value: number }>(`select value from ${table}`);
        return rows.map(({ value }) => value);
      },
    );
  } finally {
    await client.end();
  }
});
