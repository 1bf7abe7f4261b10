import { readDatabase, settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { formatTable } from './table.ts';

export const distribute: Command = {
  name: 'distribute',
  summary: 'Spread the tables over a Citus cluster',
  words: [],
  flags: { ...jsonFlag, ...settingFlags('database') },
  more:
    'The database is the coordinator of a Citus cluster, empty or with a store in it. Everything of one team goes to one node; teams and\n' +
    'keys go to all. Stop the servers first: what the tables hold is moved. It may be run again at any time and changes only what is not\n' +
    'yet as it should be. docs/operations.md tells how a cluster is set up.',
  async run(call) {
    const database = readDatabase(call.flags);
    if (database.kind !== 'postgres') {
      throw new OperatorError(
        'Only a PostgreSQL database with the extension "citus" can be distributed: --database postgres://…',
      );
    }
    const { distributePostgres } = await import('../tools/distribute-postgres.ts');
    const { nodes, shards, tables } = await distributePostgres(database.url, (name) =>
      call.note(`Distributing ${name} …`),
    );
    if (call.flags['json']) {
      const listed = tables.map(({ table: name, kind, isNew }) => ({
        table: name,
        layout: kind,
        changed: isNew,
      }));
      call.print(JSON.stringify({ nodes, shards, tables: listed }));
      return 0;
    }
    const rows = tables.map(({ table: name, kind, isNew }) => [
      name,
      kind,
      isNew ? 'now' : 'before',
    ]);
    call.print(formatTable(['TABLE', 'LAYOUT', 'SINCE'], rows));
    call.print(`Every team has its place: ${shards} shards on ${nodes} nodes.`);
    return 0;
  },
};
