import { OperatorError } from '../errors.ts';
import { defaultTimeZone } from '../store/team-marks.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { flagWords } from './shell-words.ts';
import { parseTimeZone, timeZoneFlag } from './time-zone.ts';
import { checkTeamName, withNewStore } from './with-store.ts';

export const teamsCreate: Command = {
  name: 'teams create',
  summary: 'Create a team',
  words: ['NAME'],
  flags: { ...timeZoneFlag, ...storeFlags },
  more: `Without --time-zone, the days in the reports of the team are days in ${defaultTimeZone}.`,
  examples: ['teams create search --time-zone Europe/Berlin'],
  run(call) {
    // Before the store is created: it may not be valid.
    const name = checkTeamName('NAME', call.words[0] ?? '');
    const timeZone = parseTimeZone(call.flags['time-zone'] ?? defaultTimeZone);
    return withNewStore(async (store, clock) => {
      const { team, created } = await store.ensureTeam(name, clock(), timeZone);
      if (!created) {
        throw new OperatorError(`The team "${name}" already exists. Its id is ${team.id}.`);
      }
      call.print(
        { team_id: team.id, team: team.name, time_zone: timeZone },
        `Created the team "${team.name}" with the id ${team.id} and the time zone ${timeZone}.`,
      );
      const create = call.line('keys', 'create', ...flagWords('team', team.name));
      call.hint(`To create an API key for it, run: ${create}`);
    })(call);
  },
};
