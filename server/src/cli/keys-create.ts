import { settingFlags } from '../config.ts';
import { scopes } from '../core/api-key.ts';
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
  summary: 'Create an API key, and its team where there is none',
  words: [],
  flags: {
    team: { type: 'string', help: 'name of the team (required)' },
    name: { type: 'string', help: 'what the key is for, shown in lists' },
    scope: { type: 'string', help: 'ingest (record only), read, or full; full by default' },
    expires: {
      type: 'string',
      help: 'life of the key, such as 90d or 12h; without it the key does not expire',
    },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  more: 'The key is shown once. Only its hash is stored.',
  run: (call) =>
    withNewStore(call, async (store, clock) => {
      const teamName = textFlag(call, 'team');
      if (teamName === null) throw new OperatorError('--team is missing: whose key is it?');
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
      return 0;
    }),
};

function parseScope(text: string): Scope {
  const scope = scopes.find((known) => known === text);
  if (scope) return scope;
  throw new OperatorError(`--scope must be one of ${scopes.join(', ')}.`);
}
