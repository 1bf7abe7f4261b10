import { settingFlags } from '../config.ts';
import { formatTimestamp } from '../core/clock.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { formatTable } from './table.ts';
import { withStore } from './with-store.ts';

export const teamsList: Command = {
  name: 'teams list',
  summary: 'List the teams',
  words: [],
  flags: { ...jsonFlag, ...settingFlags('database') },
  run: (call) =>
    withStore(call, async (store, clock) => {
      const teams = (await store.teams(clock())).map((team) => ({
        team: team.name,
        team_id: team.id,
        traces: team.traces,
        live_keys: team.liveKeys,
        created: formatTimestamp(team.createdAtUs),
      }));
      call.print(
        call.flags['json']
          ? JSON.stringify(teams)
          : formatTable(
              ['TEAM', 'ID', 'TRACES', 'LIVE KEYS', 'CREATED'],
              teams.map((team) => Object.values(team).map(String)),
            ),
      );
      return 0;
    }),
};
