import { counted } from '../core/counted.ts';
import type { Store } from '../store/store.ts';
import type { TeamSummary } from '../store/teams-and-keys.ts';
import type { TeamFindings } from '../tools/verify.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { differencesOf, examine } from './differences.ts';
import { rebuildSums } from './teams-set.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const verify: Command = {
  name: 'verify',
  summary: 'Check that every stored sum and payload is correct',
  flags: {
    team: { help: 'check only this team' },
    repair: { type: 'boolean', help: 'add up the sums of a team again if they are wrong' },
    ...storeFlags,
  },
  more:
    'Recomputes every sum from the traces, compares it with the stored one, and checks every value and payload. You can run it while a\n' +
    'server runs on the same database. The exit code is 0 if everything is correct. Otherwise it is 1, and the differences are printed.\n' +
    '\n' +
    'With --repair, sums and lookups that are wrong are built again from the traces, while the server runs. Traces are never changed: if\n' +
    'some are missing, nothing of that team is repaired, since its sums still contain them. Restore a backup in that case.',
  run: withStore(async (store, clock, call) => {
    const only = await chosenTeam(call, store);
    const teams = (await store.teams(clock())).filter(({ id }) => only === null || id === only.id);
    const repaired: string[] = [];
    const differences = await differencesOf(store, teams, async (team, findings) => {
      if (!call.switches.has('repair') || !isRepairable(findings)) return findings;
      const remaining = await repair(store, team);
      if (remaining.derived.length === 0) repaired.push(team.name);
      return remaining;
    });
    const traces = teams.reduce((sum, team) => sum + team.traces, 0);
    const ok = differences.length === 0;
    const lines = [
      ...repaired.map((name) => `team ${name}: the sums were wrong and have been repaired`),
      ...differences,
      ok
        ? `Everything is correct: ${counted(teams.length, 'team')}, ${counted(traces, 'trace')}.`
        : `Found ${counted(differences.length, 'difference')}.`,
    ];
    const product = { ok, teams: teams.length, traces, differences };
    call.print(call.switches.has('repair') ? { ...product, repaired } : product, lines.join('\n'));
    return ok;
  }),
};

/** If traces are missing, the sums may be all that is left of them. */
function isRepairable({ sequence, derived }: TeamFindings): boolean {
  return sequence.length === 0 && derived.length > 0;
}

async function repair(store: Store, team: TeamSummary): Promise<TeamFindings> {
  await rebuildSums(store, team, await store.timeZone(team.id));
  return examine(store, team);
}
