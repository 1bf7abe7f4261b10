import { Failure, reasonOf } from '../errors.ts';
import type { Auditor } from '../store/audit.ts';
import type { TeamSummary } from '../store/teams-and-keys.ts';
import { verifyTeam } from '../tools/verify.ts';
import { openProgress } from './progress.ts';

/** Everything that is wrong in a store, as sentences; empty if all is correct. */
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

/** Data that cannot be read is a finding too, and does not end the search. */
async function findings(where: string, look: () => Promise<readonly string[]>): Promise<string[]> {
  try {
    return (await look()).map((finding) => `${where}: ${finding}`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [`${where}: cannot be read: ${reasonOf(error)}`];
  }
}
