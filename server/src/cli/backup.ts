import { readDatabase, settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import type { BackupReport } from '../tools/backup-sqlite.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { openProgress } from './progress.ts';

export const backup: Command = {
  name: 'backup',
  summary: 'Copy the database file while a server runs on it',
  words: ['FILE'],
  flags: { ...jsonFlag, ...settingFlags('database') },
  more:
    'The copy is of one moment, is checked, and has its name only when it is whole and on disk. Traces that are damaged in the\n' +
    'database are so in the copy as well; they are named, and the exit code is 1. To go back to it: stop the server,\n' +
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
    const startMs = performance.now();
    const report = await backupWithProgress(database.path, call.words[0] ?? '');
    const seconds = Number(((performance.now() - startMs) / 1000).toFixed(1));
    call.print(
      call.flags['json'] ? JSON.stringify({ ...report, seconds }) : words(report, seconds),
    );
    return report.damaged.length === 0 ? 0 : 1;
  },
};

async function backupWithProgress(path: string, file: string): Promise<BackupReport> {
  const { backupSqlite } = await import('../tools/backup-sqlite.ts');
  const copying = openProgress('bytes');
  const checking = openProgress('traces checked');
  try {
    return await backupSqlite(path, file, {
      onCopied: (done, total) => copying.show(done, total),
      onChecked(done, total) {
        copying.end();
        checking.show(done, total);
      },
    });
  } finally {
    copying.end();
    checking.end();
  }
}

function words({ file, bytes, traces, damaged }: BackupReport, seconds: number): string {
  const done = `Backed up ${traces} traces to ${file}, ${bytes} bytes, in ${seconds} s.`;
  if (damaged.length === 0) return done;
  return [...damaged, `${done} The traces above are damaged in the database as well.`].join('\n');
}
