import type { Store, StoreOptions } from './store.ts';

/** Which store holds the data. */
export type Database = { kind: 'sqlite'; path: string } | { kind: 'postgres'; url: string };

/** Loads only the driver that is used: commands start faster, and a broken driver does not affect the other. */
export async function openStore(database: Database, options: StoreOptions): Promise<Store> {
  if (database.kind === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/open-sqlite-store.ts');
    return openSqliteStore({ ...options, path: database.path });
  }
  const { openPostgresStore } = await import('./postgres/open-postgres-store.ts');
  return openPostgresStore({ ...options, url: database.url });
}
