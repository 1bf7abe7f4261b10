import { settingFlags } from '../config.ts';
import { Failure, reasonOf } from '../errors.ts';
import type { Store, TeamSummary } from '../store/store.ts';
import { verifyTeam } from '../store/verify.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Command } from './command.ts';
import { openProgress } from './progress.ts';
import { teamNamed, withStore } from './with-store.ts';

export const verify: Command = {
  name: 'verify',
  summary: 'Recount everything from the traces and compare',
  words: [],
  flags: {
    team: { type: 'string', help: 'only this team' },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  more: 'It may run beside the server. Exits with 0 when everything adds up, and with 1 and the differences when not.',
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

async function differencesOf(store: Store, teams: readonly TeamSummary[]): Promise<string[]> {
  const found = await findings('storage', () => store.checkStorage());
  for (const team of teams) {
    const progress = openProgress(`traces of ${team.name}`);
    const ofTeam = await findings(`team ${team.name}`, async () => {
      const report = await verifyTeam(store, team.id, (done) => progress.show(done, team.traces));
      return report.differences;
    });
    progress.end();
    found.push(...ofTeam);
  }
  return found;
}

/** What cannot be read is a finding too, not the end of the search. */
async function findings(where: string, look: () => Promise<readonly string[]>): Promise<string[]> {
  try {
    return (await look()).map((finding) => `${where}: ${finding}`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [`${where}: cannot be read: ${reasonOf(error)}`];
  }
}
