import { OperatorError } from '../errors.ts';
import type { Roller } from '../store/roller.ts';
import type { Team } from '../store/teams-and-keys.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { openProgress } from './progress.ts';
import { parseTimeZone, timeZoneFlag } from './time-zone.ts';
import { teamNamed, withStore } from './with-store.ts';

export const teamsSet: Command = {
  name: 'teams set',
  summary: 'Change the time zone of a team',
  words: ['NAME'],
  flags: { ...timeZoneFlag, ...storeFlags },
  more:
    'The sums of the team are added up again by the days of the new time zone. It may run while a server runs on the same database:\n' +
    'reports use the old time zone until all sums are ready, then the new one. If it is interrupted, run it again.',
  examples: ['teams set search --time-zone America/New_York'],
  run(call) {
    const text = call.flags['time-zone'];
    if (text === undefined) {
      throw new OperatorError('--time-zone is missing. Give a time zone, such as Europe/Berlin.');
    }
    const timeZone = parseTimeZone(text);
    return withStore(async (store) => {
      const team = await teamNamed(call, store, call.words[0] ?? '');
      const isNew = (await store.timeZone(team.id)) !== timeZone;
      if (isNew) await rebuildSums(store, team, timeZone);
      // A run that was interrupted after the change may have left old sums.
      else await store.removeOldRollups(team.id);
      call.print(
        { team_id: team.id, team: team.name, time_zone: timeZone },
        isNew
          ? `The team "${team.name}" now has the time zone ${timeZone}.`
          : `The team "${team.name}" already has the time zone ${timeZone}.`,
      );
    })(call);
  },
};

/** Adds up all sums of a team again and shows the progress. */
export async function rebuildSums(store: Roller, team: Team, timeZone: string): Promise<void> {
  using progress = openProgress(`traces of ${team.name} added up`);
  await store.rebuild(team.id, timeZone, (done, total) => progress.show(done, total));
}
