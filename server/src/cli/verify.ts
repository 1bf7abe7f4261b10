import { settingFlags } from '../config.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Command } from './command.ts';
import { differencesOf } from './differences.ts';
import { teamNamed, withStore } from './with-store.ts';

export const verify: Command = {
  name: 'verify',
  summary: 'Check that every stored sum and payload is correct',
  words: [],
  flags: {
    team: { type: 'string', help: 'only this team' },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  more:
    'Recomputes every sum from the traces, decodes every payload, and compares. It may run while a server runs on the same database.\n' +
    'The exit code is 0 if everything is correct. Otherwise it is 1, and every difference is printed.',
  run: (call) =>
    withStore(call, async (store, clock) => {
      const only = textFlag(call, 'team');
      const chosen = only === null ? null : await teamNamed(call, store, only);
      const teams = (await store.teams(clock())).filter(
        ({ id }) => chosen === null || id === chosen.id,
      );
      const differences = await differencesOf(store, teams);
      const traces = teams.reduce((sum, team) => sum + team.traces, 0);
      if (call.flags['json']) {
        call.print(
          JSON.stringify({
            ok: differences.length === 0,
            teams: teams.length,
            traces,
            differences,
          }),
        );
      } else {
        for (const line of differences) call.print(line);
        call.print(
          differences.length === 0
            ? `Everything is correct: ${teams.length} teams, ${traces} traces.`
            : `Found ${differences.length} differences.`,
        );
      }
      return differences.length === 0 ? 0 : 1;
    }),
};
