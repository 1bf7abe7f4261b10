import { formatTimestamp } from '../core/clock.ts';
import type { RepriceRequest } from '../store/repricer.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { shownSums } from './reprice.ts';
import { optionalTime, printList } from './table.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const pricesHistory: Command = {
  name: 'prices history',
  summary: 'List the runs of reprice: when, by whom, and what they changed',
  flags: { team: { help: 'only this team' }, ...storeFlags },
  run: withStore(async (store, clock, call) => {
    const only = await chosenTeam(call, store);
    const runs = [];
    for (const team of only === null ? await store.teams(clock()) : [only]) {
      for (const run of await store.repriceRuns(team.id)) {
        runs.push({ ...run, team: team.name, sums: shownSums(run.result.total()) });
      }
    }
    runs.sort((a, b) => b.startedAtUs - a.startedAtUs);
    printList(call, runs, [
      ['STARTED', 'started', ({ startedAtUs }) => formatTimestamp(startedAtUs)],
      ['FINISHED', 'finished', ({ finishedAtUs }) => optionalTime(finishedAtUs)],
      ['BY', 'run_by', ({ runBy }) => runBy],
      ['TEAM', 'team', ({ team }) => team],
      ['WHAT', 'request', ({ request }) => requestWords(request)],
      ['TRACES', 'traces', ({ sums }) => sums.traces],
      ['CHANGED', 'changed', ({ sums }) => sums.changed],
      ['USD BEFORE', 'before_usd', ({ sums }) => sums.before_usd],
      ['USD AFTER', 'after_usd', ({ sums }) => sums.after_usd],
      ['DIFFERENCE', 'difference_usd', ({ sums }) => sums.difference_usd],
    ]);
  }),
};

/** As it was typed. */
function requestWords(request: RepriceRequest): string {
  const { from, to, model, onlyUncosted, includeClient } = request;
  const words = [
    from === null ? null : `--from ${from}`,
    to === null ? null : `--to ${to}`,
    model === null ? null : `--model ${model}`,
    onlyUncosted ? '--only-uncosted' : null,
    includeClient ? '--include-client' : null,
  ];
  return words.filter((word) => word !== null).join(' ');
}
