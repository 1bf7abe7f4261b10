import { usPerDay } from '../core/clock.ts';
import { counted } from '../core/counted.ts';
import type { TraceDraft } from '../core/trace-fields.ts';
import { OperatorError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { storeFlags } from './command.ts';
import type { Call, Command } from './command.ts';
import { demoDrafts, demoTimes } from './demo-data.ts';
import { demoHint, demoLink } from './demo-link.ts';
import { openProgress, openStopwatch } from './progress.ts';
import { addressFlags, serverAddress } from './server-address.ts';
import { checkTeamName, withNewStore } from './with-store.ts';

const batchRows = 1000;
const batchesInFlight = 3;

export const demo: Command = {
  name: 'demo',
  summary: 'Add sample traces to a team',
  flags: {
    count: { help: 'number of traces, default 10000' },
    team: { help: 'name of the team, default "demo"; created if it does not exist' },
    days: { help: 'spread the traces over the last N days, default 30' },
    seed: { help: 'a number, default 1; the same seed gives the same traces' },
    ...storeFlags,
    ...addressFlags,
  },
  more:
    'You can run it while a server runs on the same database. If the server responds at its address (--url, or --host, --port and\n' +
    "--base-path), a one-time link to its dashboard is printed. The times of a team's traces always increase: if the team already has\n" +
    'traces, the new ones are spread between the newest of them and now.',
  run(call) {
    const count = numberFlag(call, 'count', 10_000, 100_000_000);
    const days = numberFlag(call, 'days', 30, 3650);
    const seed = numberFlag(call, 'seed', 1, 2 ** 31);
    // Before anything is stored: it may not be valid.
    const url = serverAddress(call);
    const name = checkTeamName('--team', call.flags['team'] ?? 'demo');
    return withNewStore(async (store, clock) => {
      const nowUs = clock();
      const { team } = await store.ensureTeam(name, nowUs);
      const fromUs = Math.max(nowUs - days * usPerDay, (await newestTimeUs(store, team.id)) + 1);
      const elapsed = openStopwatch();
      await fill(store, team.id, demoDrafts(count, seed), demoTimes(count, fromUs, nowUs), count);
      const seconds = elapsed();
      const link = await demoLink(store, team, url, clock());
      call.print(
        { team_id: team.id, team: team.name, traces: count, seconds, link },
        `Stored ${counted(count, 'trace')} for the team "${team.name}" in ${seconds} s.\n` +
          demoHint(call, team, url, link),
      );
    })(call);
  },
};

/** Uses the same write path as every trace, a few batches at a time. */
async function fill(
  store: Store,
  teamId: string,
  drafts: Iterator<TraceDraft>,
  times: Iterator<number>,
  count: number,
): Promise<void> {
  using progress = openProgress('traces');
  let stored = 0;
  let made = 0;
  async function worker(): Promise<void> {
    while (made < count) {
      const rows = Math.min(batchRows, count - made);
      made += rows;
      const [outcome] = await store.append([
        { teamId, drafts: take(drafts, rows), timesUs: take(times, rows) },
      ]);
      if (outcome?.kind !== 'stored') {
        const reason = outcome?.kind === 'failed' ? outcome.reason : 'no reply';
        throw new OperatorError(`The store rejected the traces: ${reason}.`);
      }
      stored += rows;
      progress.show(stored, count);
    }
  }
  await Promise.all(Array.from({ length: batchesInFlight }, worker));
}

function take<T>(source: Iterator<T>, count: number): T[] {
  return Array.from({ length: count }, () => source.next().value as T);
}

async function newestTimeUs(store: Store, teamId: string): Promise<number> {
  const omit = new Set(['input', 'output'] as const);
  const { first } = await store.page(teamId, { page: 1, limit: 1, omit });
  return first[0]?.createdAtUs ?? 0;
}

function numberFlag(call: Call, name: string, fallback: number, max: number): number {
  const text = call.flags[name];
  if (text === undefined) return fallback;
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : NaN;
  if (value >= 1 && value <= max) return value;
  throw new OperatorError(`--${name} must be a whole number from 1 to ${max}.`);
}
