import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { usePostgres } from '../support/postgres.ts';
import { hexOf, runSql } from '../support/store-place.ts';
import { describeStoreContract } from './store-contract.ts';

const postgres = usePostgres();

describeStoreContract('PostgreSQL', async () => {
  const url = await postgres.createDatabase();
  return {
    database: url,
    async generations(teamId) {
      const rows = await postgres.sql(
        url,
        `select generation from rollups where team_id = $1
         union select generation from roll_marks where team_id = $1 order by generation`,
        [teamId],
      );
      return rows.map(({ generation }) => Number(generation));
    },
    async holdRollups(teamId) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('begin');
      await client.query('select 1 from rollups where team_id = $1 for update', [teamId]);
      return () => client.end();
    },
    open: (options) => openPostgresStore({ ...options, url }),
    overwriteValue: async (teamId, seq, column, value) => {
      await runSql(
        { kind: 'postgres', url },
        `update traces set ${column} = ${value} where team_id = '${teamId}' and seq = ${seq}`,
      );
    },
    overwriteInput: async (teamId, seq, bytes) => {
      await runSql(
        { kind: 'postgres', url },
        `update trace_payloads set input = '\\x${hexOf(bytes)}' where team_id = '${teamId}' and seq = ${seq}`,
      );
    },
    dispose: async () => {},
  };
});
