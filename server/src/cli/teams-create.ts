import { settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { flagWords } from './shell-words.ts';
import { checkTeamName, withNewStore } from './with-store.ts';

export const teamsCreate: Command = {
  name: 'teams create',
  summary: 'Create a team',
  words: ['NAME'],
  flags: { ...jsonFlag, ...settingFlags('database') },
  run: (call) =>
    withNewStore(call, async (store, clock) => {
      const name = checkTeamName('NAME', call.words[0] ?? '');
      const { team, created } = await store.ensureTeam(name, clock());
      if (!created)
        throw new OperatorError(`The team "${name}" already exists. Its id is ${team.id}.`);
      const product = { team_id: team.id, team: team.name };
      call.print(
        call.flags['json']
          ? JSON.stringify(product)
          : `Created the team "${team.name}" with the id ${team.id}.`,
      );
      if (!call.flags['json']) {
        const create = call.line('keys', 'create', ...flagWords('team', team.name));
        call.note(`To create an API key for it, run: ${create}`);
      }
      return 0;
    }),
};
