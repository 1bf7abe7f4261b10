import { OperatorError } from '../errors.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { flagWords } from './shell-words.ts';
import { checkTeamName, withNewStore } from './with-store.ts';

export const teamsCreate: Command = {
  name: 'teams create',
  summary: 'Create a team',
  words: ['NAME'],
  flags: storeFlags,
  run: withNewStore(async (store, clock, call) => {
    const name = checkTeamName('NAME', call.words[0] ?? '');
    const { team, created } = await store.ensureTeam(name, clock());
    if (!created) {
      throw new OperatorError(`The team "${name}" already exists. Its id is ${team.id}.`);
    }
    call.print(
      { team_id: team.id, team: team.name },
      `Created the team "${team.name}" with the id ${team.id}.`,
    );
    const create = call.line('keys', 'create', ...flagWords('team', team.name));
    call.hint(`To create an API key for it, run: ${create}`);
  }),
};
