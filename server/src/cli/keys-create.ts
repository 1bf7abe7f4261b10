import { settingFlags } from '../config.ts';
import { allows, scopes } from '../core/api-key.ts';
import type { Scope } from '../core/api-key.ts';
import { OperatorError } from '../errors.ts';
import { makeKey } from '../store/teams-and-keys.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Command } from './command.ts';
import { parseDuration } from './duration.ts';
import { printKey } from './print-key.ts';
import { checkName, checkTeamName, withNewStore } from './with-store.ts';

export const keysCreate: Command = {
  name: 'keys create',
  summary: 'Create an API key, and its team if there is none',
  words: [],
  flags: {
    team: { type: 'string', help: 'name of the team (required)' },
    name: { type: 'string', help: 'a name for the key, shown in lists' },
    scope: { type: 'string', help: 'ingest (record traces only), read, or full; default full' },
    expires: {
      type: 'string',
      help: 'lifetime of the key, such as 90d or 12h; it does not expire by default',
    },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  more: 'The key is shown once. Only its hash is stored.',
  examples: ['keys create --team search --scope ingest --name production --expires 90d'],
  run: (call) =>
    withNewStore(call, async (store, clock) => {
      const teamName = textFlag(call, 'team');
      if (teamName === null) throw new OperatorError('--team is missing. Give the name of a team.');
      const name = textFlag(call, 'name');
      const scope = parseScope(textFlag(call, 'scope') ?? 'full');
      const expires = textFlag(call, 'expires');
      const nowUs = clock();
      const { key, record } = makeKey({
        name: name === null ? null : checkName('--name', name),
        scope,
        nowUs,
        expiresAtUs: expires === null ? null : nowUs + parseDuration('--expires', expires),
      });
      const { team, created } = await store.ensureTeam(checkTeamName('--team', teamName), nowUs);
      await store.createKey(team.id, record);
      if (created) call.note(`Created the team "${team.name}".`);
      printKey(call, key, record, team);
      if (!call.flags['json'] && allows(scope, 'read')) {
        call.note(
          `To open the dashboard with it, run: ${call.line('sign-in', '--key-id', record.id)}`,
        );
      }
      return 0;
    }),
};

function parseScope(text: string): Scope {
  const scope = scopes.find((known) => known === text);
  if (scope) return scope;
  throw new OperatorError(`--scope must be one of ${scopes.join(', ')}.`);
}
