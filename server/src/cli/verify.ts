import { counted } from '../core/counted.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { differencesOf } from './differences.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const verify: Command = {
  name: 'verify',
  summary: 'Check that every stored sum and payload is correct',
  flags: { team: { help: 'check only this team' }, ...storeFlags },
  more:
    'Recomputes every sum from the traces, compares it with the stored one, and decodes every payload. You can run it while a server runs\n' +
    'on the same database. The exit code is 0 if everything is correct. Otherwise it is 1, and every difference is printed.',
  run: withStore(async (store, clock, call) => {
    const only = await chosenTeam(call, store);
    const teams = (await store.teams(clock())).filter(({ id }) => only === null || id === only.id);
    const differences = await differencesOf(store, teams);
    const traces = teams.reduce((sum, team) => sum + team.traces, 0);
    const ok = differences.length === 0;
    call.print(
      { ok, teams: teams.length, traces, differences },
      ok
        ? `Everything is correct: ${counted(teams.length, 'team')}, ${counted(traces, 'trace')}.`
        : [...differences, `Found ${counted(differences.length, 'difference')}.`].join('\n'),
    );
    return ok;
  }),
};
