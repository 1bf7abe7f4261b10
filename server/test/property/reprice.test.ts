import { join } from 'node:path';
import { test } from 'node:test';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { usePostgres } from '../support/postgres.ts';
import { runsOf } from '../support/runs.ts';
import { temporaryFolder } from '../support/service.ts';
import { compareReprices } from './reprice-histories.ts';

const postgres = usePostgres();
const options = { clock: { kind: 'system' }, role: 'server', rolling: 'manual' } as const;

const onSqlite = runsOf(25);

test(`computing any costs again in any order, killed anywhere and continued, ends as if computed from scratch, and verify is always clean, for ${onSqlite} random histories on SQLite`, async (t) => {
  const folder = temporaryFolder();
  const store = await openSqliteStore({ ...options, path: join(folder.path, 'reprice.db') });
  try {
    t.diagnostic(JSON.stringify(await compareReprices(store, onSqlite)));
  } finally {
    await store.close();
    folder.remove();
  }
});

const onPostgres = runsOf(8);

test(`the same for ${onPostgres} random histories on PostgreSQL`, async (t) => {
  const store = await openPostgresStore({ ...options, url: await postgres.createDatabase() });
  try {
    t.diagnostic(JSON.stringify(await compareReprices(store, onPostgres)));
  } finally {
    await store.close();
  }
});
