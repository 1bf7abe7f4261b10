import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { temporaryFolder } from '../support/service.ts';
import { describeStoreContract } from './store-contract.ts';

describeStoreContract('SQLite', async () => {
  const folder = temporaryFolder();
  return {
    open: (options) => openSqliteStore({ ...options, path: join(folder.path, 'contract.db') }),
    dispose: async () => folder.remove(),
  };
});
