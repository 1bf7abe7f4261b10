import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { usePostgres } from '../support/postgres.ts';
import { describeStoreContract } from './store-contract.ts';

const postgres = usePostgres();

describeStoreContract('PostgreSQL', async () => {
  const url = await postgres.createDatabase();
  return {
    open: (options) => openPostgresStore({ ...options, url }),
    dispose: async () => {},
  };
});
