import { formatTimestamp } from '../core/clock.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { printList } from './table.ts';
import { withStore } from './with-store.ts';

export const teamsList: Command = {
  name: 'teams list',
  summary: 'List the teams',
  flags: storeFlags,
  run: withStore(async (store, clock, call) => {
    const teams = [];
    for (const team of await store.teams(clock())) {
      teams.push({ ...team, timeZone: await store.timeZone(team.id) });
    }
    printList(call, teams, [
      ['TEAM', 'team', ({ name }) => name],
      ['ID', 'team_id', ({ id }) => id],
      ['TIME ZONE', 'time_zone', ({ timeZone }) => timeZone],
      ['TRACES', 'traces', ({ traces }) => traces],
      ['LIVE KEYS', 'live_keys', ({ liveKeys }) => liveKeys],
      ['CREATED', 'created', ({ createdAtUs }) => formatTimestamp(createdAtUs)],
    ]);
  }),
};
