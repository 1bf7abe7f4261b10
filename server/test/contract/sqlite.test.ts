import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { temporaryFolder } from '../support/service.ts';
import { hexOf, runSql } from '../support/store-place.ts';
import { describeStoreContract } from './store-contract.ts';

describeStoreContract('SQLite', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'contract.db');
  return {
    open: (options) => openSqliteStore({ ...options, path }),
    overwriteInput: async (teamId, seq, bytes) => {
      await runSql(
        { kind: 'sqlite', path },
        `update trace_payloads set input = x'${hexOf(bytes)}'
         where key = (select no from teams where id = '${teamId}') << 40 | ${seq}`,
      );
    },
    dispose: async () => folder.remove(),
  };
});
