import { readDatabase, settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { formatTable } from './table.ts';

export const distribute: Command = {
  name: 'distribute',
  summary: 'Distribute the tables over a Citus cluster',
  words: [],
  flags: { ...jsonFlag, ...settingFlags('database') },
  more:
    'The database must be the coordinator of a Citus cluster, either empty or with TraceTally data in it. All data of a team goes to one\n' +
    'node; teams and keys go to every node. Stop the servers first, because the data is moved. You can run it again at any time: it only\n' +
    'changes what is not distributed yet. docs/operations.md describes how to set up a cluster.',
  async run(call) {
    const database = readDatabase(call.flags);
    if (database.kind !== 'postgres') {
      throw new OperatorError(
        'Only a PostgreSQL database with the extension "citus" can be distributed. Give it with --database postgres://…',
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
    call.print(`All tables are distributed: ${shards} shards on ${nodes} nodes.`);
    return 0;
  },
};
