import { readDatabase } from '../config.ts';
import { counted } from '../core/counted.ts';
import { OperatorError } from '../errors.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { alignColumns } from './table.ts';

export const distribute: Command = {
  name: 'distribute',
  summary: 'Distribute the tables over a Citus cluster',
  flags: storeFlags,
  more:
    "The database must be the coordinator of a Citus cluster, either empty or with TraceTally data in it. All of a team's data goes to one\n" +
    'node; teams and keys go to every node. Stop the servers first, because the data is moved. You can run it again: it only changes what\n' +
    'is not distributed yet. docs/operations.md describes how to set up a cluster.',
  async run(call) {
    const database = readDatabase(call.flags);
    if (database.kind !== 'postgres') {
      throw new OperatorError(
        'Only a PostgreSQL database with the "citus" extension can be distributed. Specify it with --database postgres://…',
      );
    }
    const { distributePostgres } = await import('../tools/distribute-postgres.ts');
    const report = await distributePostgres(database.url, (table) =>
      call.note(`Distributing ${table} …`),
    );
    const rows = report.tables.map((row) => [row.table, row.layout, row.changed ? 'yes' : 'no']);
    call.print(
      report,
      `${alignColumns([['TABLE', 'LAYOUT', 'CHANGED'], ...rows])}\n` +
        `All tables are distributed: ${counted(report.shards, 'shard')} on ${counted(report.nodes, 'node')}.`,
    );
  },
};
