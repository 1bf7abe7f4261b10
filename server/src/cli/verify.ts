import { settingFlags } from '../config.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Command } from './command.ts';
import { differencesOf } from './differences.ts';
import { teamNamed, withStore } from './with-store.ts';

export const verify: Command = {
  name: 'verify',
  summary: 'Recount everything from the traces, decode every payload, and compare',
  words: [],
  flags: {
    team: { type: 'string', help: 'only this team' },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  more: 'It may run beside the server. Exits with 0 when everything adds up and can be read, and with 1 and the differences when not.',
  run: (call) =>
    withStore(call, async (store, clock) => {
      const only = textFlag(call, 'team');
      const chosen = only === null ? null : await teamNamed(store, only);
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
            ? `Everything adds up: ${teams.length} teams, ${traces} traces.`
            : `${differences.length} differences.`,
        );
      }
      return differences.length === 0 ? 0 : 1;
    }),
};
