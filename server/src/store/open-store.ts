import { openSqliteStore } from './sqlite/open-sqlite-store.ts';
import type { Store, StoreOptions } from './store.ts';

/** Which store holds the data. */
export type Database = { kind: 'sqlite'; path: string };

export function openStore(database: Database, options: StoreOptions): Promise<Store> {
  return openSqliteStore({ ...options, path: database.path });
}
