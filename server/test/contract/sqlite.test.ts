import { join } from 'node:path';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { temporaryFolder } from '../support/service.ts';
import { hexOf, runSql } from '../support/store-place.ts';
import { describeStoreContract } from './store-contract.ts';

describeStoreContract('SQLite', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'contract.db');
  return {
    database: `sqlite:${path}`,
    async generations(teamId) {
      const [team] = await runSql(
        { kind: 'sqlite', path },
        `select no from teams where id = '${teamId}'`,
      );
      const ofTeam = `where team_no = ${String(team?.['no'])}`;
      const rows = await runSql(
        { kind: 'sqlite', path: rollupPathOf(path) },
        `select generation from rollups ${ofTeam} union select generation from roll_marks ${ofTeam} order by generation`,
      );
      return rows.map(({ generation }) => Number(generation));
    },
    // Rows are removed in many transactions, so a kill finds some of them.
    holdRollups: async () => async () => {},
    open: (options) => openSqliteStore({ ...options, path }),
    overwriteValue: async (teamId, seq, column, value) => {
      await runSql(
        { kind: 'sqlite', path },
        `update traces set ${column} = ${value} where key = (select no from teams where id = '${teamId}') << 40 | ${seq}`,
      );
    },
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
