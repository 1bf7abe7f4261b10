import { readDatabase, settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { openProgress } from './progress.ts';

export const backup: Command = {
  name: 'backup',
  summary: 'Copy the database file while a server runs on it',
  words: ['FILE'],
  flags: { ...jsonFlag, ...settingFlags('database') },
  more:
    'The copy is of one moment, is checked, and has its name only when it is whole and on disk. To go back to it: stop the server,\n' +
    'put the copy in the place of the database, remove the files beside it that end in -wal and -shm, start.\n' +
    '\n' +
    '  tracetally backup /backups/tracetally-$(date +%F).db',
  async run(call) {
    const database = readDatabase(call.flags);
    if (database.kind !== 'sqlite') {
      throw new OperatorError(
        'PostgreSQL has backups of its own: pg_dump, or a base backup with an archive of the log. See docs/operations.md.',
      );
    }
    const { backupSqlite } = await import('../store/sqlite/backup.ts');
    const startMs = performance.now();
    const progress = openProgress('bytes');
    const { file, bytes, traces } = await backupSqlite(
      database.path,
      call.words[0] ?? '',
      (done, total) => progress.show(done, total),
    ).finally(() => progress.end());
    const seconds = Number(((performance.now() - startMs) / 1000).toFixed(1));
    call.print(
      call.flags['json']
        ? JSON.stringify({ file, bytes, traces, seconds })
        : `Backed up ${traces} traces to ${file}, ${bytes} bytes, in ${seconds} s.`,
    );
    return 0;
  },
};
