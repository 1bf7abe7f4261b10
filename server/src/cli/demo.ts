import { setTimeout as pause } from 'node:timers/promises';
import { formatTimestamp, usPerDay } from '../core/clock.ts';
import { counted } from '../core/counted.ts';
import { limits } from '../limits.ts';
import { draftTrace } from '../core/trace.ts';
import type { TraceDraft } from '../core/trace-fields.ts';
import { OperatorError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { storeFlags } from './command.ts';
import type { Call, Command } from './command.ts';
import { demoTraces } from './demo-data.ts';
import { demoHint, demoLink } from './demo-link.ts';
import { demoTimes } from './demo-times.ts';
import { openProgress, openStopwatch } from './progress.ts';
import { addressFlags, serverAddress } from './server-address.ts';
import { checkTeamName, withNewStore } from './with-store.ts';

/** One transaction, about 10 ms on SQLite. */
const batchRows = 250;

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
    '--base-path), a one-time link to its dashboard is printed. The days are those of started_at: created_at is the time at which a trace\n' +
    'is stored, and the list of traces follows it.',
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
      const times = demoTimes(count, nowUs - days * usPerDay, nowUs);
      const elapsed = openStopwatch();
      await fill(store, team.id, draftsAt(times, count, seed), count);
      // Otherwise the first reads would have to add up every trace.
      while ((await store.roll(team.id, limits.rollRowsMax)) > 0);
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

function* draftsAt(times: Iterable<number>, count: number, seed: number): Generator<TraceDraft> {
  const traces = demoTraces(count, seed);
  for (const us of times) {
    const { value, done } = traces.next();
    if (!done) yield draftTrace({ ...value, started_at: formatTimestamp(us) });
  }
}

/**
 * Uses the same write path as every trace. A server may be writing to the same file: after each short transaction it gets at least as
 * much time as the transaction took.
 */
async function fill(
  store: Store,
  teamId: string,
  drafts: Iterator<TraceDraft, void>,
  count: number,
): Promise<void> {
  using progress = openProgress('traces');
  for (let stored = 0; stored < count;) {
    const batch = take(drafts, Math.min(batchRows, count - stored));
    const startMs = performance.now();
    const [outcome] = await store.append([{ teamId, drafts: batch }]);
    if (outcome?.kind !== 'stored') {
      const reason = outcome?.kind === 'failed' ? outcome.reason : 'no reply';
      throw new OperatorError(`The store rejected the traces: ${reason}.`);
    }
    stored += batch.length;
    progress.show(stored, count);
    await pause(performance.now() - startMs);
  }
}

function take<T>(source: Iterator<T, void>, count: number): T[] {
  const taken: T[] = [];
  for (let i = 0; i < count; i++) {
    const { value, done } = source.next();
    if (!done) taken.push(value as T);
  }
  return taken;
}

function numberFlag(call: Call, name: string, fallback: number, max: number): number {
  const text = call.flags[name];
  if (text === undefined) return fallback;
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : NaN;
  if (value >= 1 && value <= max) return value;
  throw new OperatorError(`--${name} must be a whole number from 1 to ${max}.`);
}
