import { allows, scopes } from '../core/api-key.ts';
import { OperatorError } from '../errors.ts';
import { makeKey } from '../store/teams-and-keys.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { parseDuration } from './duration.ts';
import { printKey } from './print-key.ts';
import { checkName, checkTeamName, withNewStore } from './with-store.ts';

export const keysCreate: Command = {
  name: 'keys create',
  summary: 'Create an API key, and its team if it does not exist',
  flags: {
    team: { help: 'name of the team (required)' },
    name: { help: 'a name for the key, shown in lists' },
    scope: { help: 'ingest (only record traces), read (only read) or full (both); default full' },
    expires: { help: 'lifetime of the key, such as 90d or 12h; by default it does not expire' },
    ...storeFlags,
  },
  more: 'The key is shown once. Only its hash is stored.',
  examples: ['keys create --team search --scope ingest --name production --expires 90d'],
  run: withNewStore(async (store, clock, call) => {
    const { team: teamName, name, scope: scopeName = 'full', expires } = call.flags;
    if (teamName === undefined) {
      throw new OperatorError('--team is missing. Specify the name of a team.');
    }
    const scope = scopes.find((known) => known === scopeName);
    if (!scope) throw new OperatorError(`--scope must be one of ${scopes.join(', ')}.`);
    const nowUs = clock();
    const { key, record } = makeKey({
      name: name === undefined ? null : checkName('--name', name),
      scope,
      nowUs,
      expiresAtUs: expires === undefined ? null : nowUs + parseDuration('--expires', expires),
    });
    const { team, created } = await store.ensureTeam(checkTeamName('--team', teamName), nowUs);
    await store.createKey(team.id, record);
    if (created) call.note(`Created the team "${team.name}".`);
    printKey(call, key, record, team);
    if (allows(scope, 'read')) {
      call.hint(
        `To open the dashboard with it, run: ${call.line('sign-in', '--key-id', record.id)}`,
      );
    }
  }),
};
