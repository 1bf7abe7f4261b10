import { join } from 'node:path';
import { readDatabase } from '../../src/config.ts';
import type { Database } from '../../src/store/open-store.ts';
import { makePostgres } from '../../test/support/postgres.ts';
import { temporaryFolder } from '../../test/support/service.ts';

/** An empty store with a folder for the other files of the run. Both go away. */
export interface SoakStore {
  folder: string;
  /** As `--database` names it. */
  name: string;
  database: Database;
  remove(): Promise<void>;
}

export async function makeSoakStore(kind: 'sqlite' | 'postgres'): Promise<SoakStore> {
  const folder = temporaryFolder();
  const storeOf = (name: string, remove: () => Promise<void>): SoakStore => {
    return { folder: folder.path, name, database: readDatabase({ database: name }, {}), remove };
  };
  if (kind === 'sqlite') {
    return storeOf(`sqlite:${join(folder.path, 'soak.db')}`, async () => folder.remove());
  }
  const postgres = makePostgres({});
  await postgres.start();
  const remove = async (): Promise<void> => {
    await postgres.stop();
    folder.remove();
  };
  return storeOf(await postgres.createDatabase(), remove);
}
