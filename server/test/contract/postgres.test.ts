import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { usePostgres } from '../support/postgres.ts';
import { hexOf, runSql } from '../support/store-place.ts';
import { describeStoreContract } from './store-contract.ts';

const postgres = usePostgres();

describeStoreContract('PostgreSQL', async () => {
  const url = await postgres.createDatabase();
  return {
    open: (options) => openPostgresStore({ ...options, url }),
    overwriteInput: async (teamId, seq, bytes) => {
      await runSql(
        { kind: 'postgres', url },
        `update trace_payloads set input = '\\x${hexOf(bytes)}' where team_id = '${teamId}' and seq = ${seq}`,
      );
    },
    dispose: async () => {},
  };
});
