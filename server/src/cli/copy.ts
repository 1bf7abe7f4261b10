import { parseDatabaseFlag } from '../config.ts';
import { openClock } from '../core/clock.ts';
import { OperatorError } from '../errors.ts';
import { copyStore, refuseLateComers } from '../tools/copy-store.ts';
import type { CopyReport } from '../tools/copy-store.ts';
import { openStore } from '../store/open-store.ts';
import type { Database } from '../store/open-store.ts';
import { realDatabasePath } from '../store/sqlite/database-path.ts';
import type { Store } from '../store/store.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Call, Command } from './command.ts';
import { differencesOf } from './differences.ts';
import { openProgress } from './progress.ts';

export const copy: Command = {
  name: 'copy',
  summary: 'Copy everything from one store to another',
  words: [],
  flags: {
    from: { type: 'string', help: 'the source, sqlite:PATH or postgres://…' },
    to: { type: 'string', help: 'the target; made where there is none' },
    follow: {
      type: 'boolean',
      help: 'copy while servers write to the source, until they have stopped',
    },
    ...jsonFlag,
  },
  more:
    'Teams, keys, traces and known Idempotency-Keys are copied, with ids, times and order as they are. The source is only read\n' +
    '(one of an older version is brought up to date first, as a start would). No server may run on the target meanwhile.\n' +
    'An interrupted copy goes on where it ended when it is run again. At the end everything in the target is recounted, as by\n' +
    'tracetally verify. A source that is being written is refused, unless with --follow: it copies on, says when it has caught\n' +
    'up, and ends when the servers of the source were stopped.\n' +
    '\n' +
    '  tracetally copy --from sqlite:./data/tracetally.db --to postgres://tally@db.example/tally',
  async run(call) {
    const [from, to] = [databaseFlag(call, 'from'), databaseFlag(call, 'to')];
    if (nameOf(from) === nameOf(to)) {
      throw new OperatorError('--from and --to are the same store.');
    }
    const clock = { kind: 'system' } as const;
    const source = await openStore(from, { clock, role: 'tool', mustExist: true });
    try {
      const target = await openStore(to, { clock, role: 'tool' });
      try {
        return await copyAndCheck(call, source, target, openClock(clock));
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
};

async function copyAndCheck(
  call: Call,
  source: Store,
  target: Store,
  clock: () => number,
): Promise<number> {
  const startMs = performance.now();
  const report = await copyWithProgress(call, source, target, clock);
  const differences = [
    ...(await unlikeSums(source, target, report)),
    ...(await differencesOf(target, report.teams)),
  ];
  // The recount takes a while, and a server may have come back meanwhile.
  await refuseLateComers(source, report.teams, clock());
  const seconds = Number(((performance.now() - startMs) / 1000).toFixed(1));
  call.print(reportOf(call.flags['json'] === true, report, differences, seconds));
  return differences.length === 0 ? 0 : 1;
}

async function copyWithProgress(
  call: Call,
  source: Store,
  target: Store,
  clock: () => number,
): Promise<CopyReport> {
  const progress = openProgress('traces');
  try {
    return await copyStore(source, target, {
      clock,
      follow: call.flags['follow'] === true,
      onProgress: (done, total) => progress.show(done, total),
      onCaughtUp(writers) {
        progress.end();
        call.note(
          `Caught up. Stop the writers (${writers}) when you are ready: the copy then ends.`,
        );
      },
    });
  } finally {
    progress.end();
  }
}

/** Both stores must say the same of each team; the recount of the target then says that it is right. */
async function unlikeSums(source: Store, target: Store, { teams }: CopyReport): Promise<string[]> {
  const found: string[] = [];
  for (const { id, name } of teams) {
    const [ours, theirs] = [await source.total(id), await target.total(id)];
    const isAlike = Object.entries(ours).every(
      ([column, sum]) => theirs[column as keyof typeof theirs] === sum,
    );
    if (!isAlike) found.push(`team ${name}: the sums are not those of the source`);
  }
  return found;
}

function reportOf(
  isJson: boolean,
  { teams, keys, copied }: CopyReport,
  differences: readonly string[],
  seconds: number,
): string {
  const traces = teams.reduce((sum, team) => sum + team.traces, 0);
  const ok = differences.length === 0;
  if (isJson) {
    return JSON.stringify({ ok, teams: teams.length, keys, traces, copied, differences, seconds });
  }
  const done =
    `Copied ${copied} traces in ${seconds} s. The target has ${teams.length} teams, ${keys} keys and all ` +
    `${traces} traces of the source`;
  return ok
    ? `${done}, and everything adds up.`
    : [...differences, `${done}, but there are ${differences.length} differences.`].join('\n');
}

/** Two paths to one file are the same store. */
function nameOf(database: Database): string {
  return database.kind === 'sqlite' ? realDatabasePath(database.path) : database.url;
}

function databaseFlag(call: Call, name: 'from' | 'to') {
  const text = textFlag(call, name);
  if (text === null) throw new OperatorError(`--${name} is missing: which store?`);
  return parseDatabaseFlag(`--${name}`, text);
}
