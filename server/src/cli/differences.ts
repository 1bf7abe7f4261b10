import { Failure, reasonOf } from '../errors.ts';
import type { Auditor } from '../store/audit.ts';
import type { TeamSummary } from '../store/teams-and-keys.ts';
import { verifyTeam } from '../tools/verify.ts';
import { openProgress } from './progress.ts';

/** What does not add up in a store, as sentences; empty where everything does. */
export async function differencesOf(
  store: Auditor,
  teams: readonly TeamSummary[],
): Promise<string[]> {
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
