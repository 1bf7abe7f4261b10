import { isDeepStrictEqual } from 'node:util';
import { parseDatabaseFlag } from '../config.ts';
import { onlyMeasures, overviewQuery } from '../core/analytics.ts';
import { openClock } from '../core/clock.ts';
import { counted } from '../core/counted.ts';
import type { Measures } from '../core/measures.ts';
import { OperatorError } from '../errors.ts';
import { copyStore, refuseLateComers } from '../tools/copy-store.ts';
import type { CopyReport } from '../tools/copy-store.ts';
import type { Database } from '../store/open-store.ts';
import { realDatabasePath } from '../store/sqlite/database-path.ts';
import type { Store } from '../store/store.ts';
import { jsonFlag } from './command.ts';
import type { Call, Command } from './command.ts';
import { differencesOf } from './differences.ts';
import { openProgress, openStopwatch } from './progress.ts';
import { openTool } from './with-store.ts';

export const copy: Command = {
  name: 'copy',
  summary: 'Copy all data from one database to another',
  flags: {
    from: { help: 'source database, sqlite:PATH or postgres://… (required)' },
    to: { help: 'target database; an SQLite file is created if it does not exist (required)' },
    follow: {
      type: 'boolean',
      help: 'copy while servers write to the source; ends after they have stopped',
    },
    ...jsonFlag,
  },
  more:
    'Copies teams with their time zones, keys, traces and recent Idempotency-Keys, with the same ids, times and order. The source is\n' +
    'only read. No server may run on the target during the copy.\n' +
    'If a copy is interrupted, run it again: it continues where it stopped. At the end, the target is checked, as with "verify".\n' +
    '\n' +
    'If a server writes to the source, the copy does not start unless you use --follow. With it, the copy runs while the server writes,\n' +
    'prints a message when it has caught up, and ends after you have stopped the servers on the source.',
  examples: ['copy --from sqlite:./data/tracetally.db --to postgres://tally@db.example/tally'],
  async run(call) {
    const [from, to] = [databaseFlag(call, 'from'), databaseFlag(call, 'to')];
    if (nameOf(from) === nameOf(to)) {
      throw new OperatorError('--from and --to are the same database.');
    }
    await using source = await openTool(from, { mustExist: true });
    await using target = await openTool(to, { mustExist: false });
    const clock = openClock({ kind: 'system' });
    const elapsed = openStopwatch();
    using progress = openProgress('traces');
    const report = await copyStore(source, target, {
      clock,
      follow: call.switches.has('follow'),
      onProgress: (done, total) => progress.show(done, total),
      onCaughtUp(writers) {
        progress.end();
        call.note(`Caught up. To finish the copy, stop the servers on the source (${writers}).`);
      },
    });
    progress.end();
    const differences = [
      ...(await unlikeSums(source, target, report)),
      ...(await differencesOf(target, report.teams)),
    ];
    // The check takes a while, and a server may have been started again in the meantime.
    await refuseLateComers(source, report.teams, clock());
    printReport(call, report, differences, elapsed());
    return differences.length === 0;
  },
};

/** Both stores must have the same sums for each team; the check of the target then shows that they are correct. */
async function unlikeSums(source: Store, target: Store, { teams }: CopyReport): Promise<string[]> {
  const found: string[] = [];
  for (const { id, name } of teams) {
    const [ours, theirs] = [await overviewOf(source, id), await overviewOf(target, id)];
    if (!isDeepStrictEqual(ours, theirs)) {
      found.push(`team ${name}: its sums differ from those in the source`);
    }
  }
  return found;
}

async function overviewOf(store: Store, teamId: string): Promise<Measures> {
  return onlyMeasures((await store.tallies(teamId, overviewQuery)).first);
}

function printReport(
  call: Call,
  { teams, keys, copied }: CopyReport,
  differences: readonly string[],
  seconds: number,
): void {
  const traces = teams.reduce((sum, team) => sum + team.traces, 0);
  const ok = differences.length === 0;
  const found = counted(differences.length, 'difference');
  const done =
    `Copied ${counted(copied, 'trace')} in ${seconds} s. The target has ${counted(teams.length, 'team')}, ` +
    `${counted(keys, 'key')} and ${counted(traces, 'trace')}, like the source`;
  call.print(
    { ok, teams: teams.length, keys, traces, copied, differences, seconds },
    ok
      ? `${done}, and everything is correct.`
      : [...differences, `${done}, but verification found ${found}.`].join('\n'),
  );
}

/** Two paths to one file are the same store. */
function nameOf(database: Database): string {
  return database.kind === 'sqlite' ? realDatabasePath(database.path) : database.url;
}

function databaseFlag({ flags }: Call, name: 'from' | 'to'): Database {
  const text = flags[name];
  if (text !== undefined) return parseDatabaseFlag(`--${name}`, text);
  throw new OperatorError(
    `--${name} is missing. Specify a database, such as sqlite:./data/tracetally.db or postgres://…`,
  );
}
