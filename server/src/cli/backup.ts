import { readDatabase } from '../config.ts';
import { counted } from '../core/counted.ts';
import { OperatorError } from '../errors.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { openProgress, openStopwatch } from './progress.ts';

export const backup: Command = {
  name: 'backup',
  summary: 'Back up the SQLite database, even while a server runs on it',
  words: ['FILE'],
  flags: storeFlags,
  more:
    'The backup is a consistent snapshot. It is checked, and FILE appears only when it is complete and on disk. Traces that are damaged in\n' +
    'the database are damaged in the backup too; they are listed, and the exit code is 1. To restore: stop the server, replace the database\n' +
    'with the backup, remove the files next to it that end in -wal and -shm, and start the server.',
  examples: ['backup /backups/tracetally-$(date +%F).db'],
  async run(call) {
    const database = readDatabase(call.flags);
    if (database.kind !== 'sqlite') {
      throw new OperatorError(
        'Only SQLite databases can be backed up with this command. For PostgreSQL use pg_dump or pg_basebackup; see docs/operations.md.',
      );
    }
    const { backupSqlite } = await import('../tools/backup-sqlite.ts');
    const elapsed = openStopwatch();
    using copying = openProgress('bytes');
    using checking = openProgress('traces checked');
    const report = await backupSqlite(database.path, call.words[0] ?? '', {
      onCopied: (done, total) => copying.show(done, total),
      onChecked(done, total) {
        copying.end();
        checking.show(done, total);
      },
    });
    copying.end();
    checking.end();
    const { file, bytes, traces, damaged } = report;
    const seconds = elapsed();
    const done = `Backed up ${counted(traces, 'trace')} to ${file}, ${bytes} bytes, in ${seconds} s.`;
    const isSound = damaged.length === 0;
    const warning = `${done} The traces listed above are damaged in the database and in the backup.`;
    call.print({ ...report, seconds }, isSound ? done : [...damaged, warning].join('\n'));
    return isSound;
  },
};
