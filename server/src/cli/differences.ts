import { Failure, reasonOf } from '../errors.ts';
import type { Auditor } from '../store/audit.ts';
import type { TeamSummary } from '../store/teams-and-keys.ts';
import { allFindings, examineTeam } from '../tools/verify.ts';
import type { TeamFindings } from '../tools/verify.ts';
import { openProgress } from './progress.ts';

/** What to do with the findings of a team. Returns the findings that remain. */
type Treatment = (team: TeamSummary, findings: TeamFindings) => Promise<TeamFindings>;

/** Everything that is wrong in a store, as sentences; empty if all is correct. */
export async function differencesOf(
  store: Auditor,
  teams: readonly TeamSummary[],
  treat: Treatment = async (_, findings) => findings,
): Promise<string[]> {
  const found = await orUnreadable('storage', () => store.checkStorage());
  for (const team of teams) {
    const look = async (): Promise<readonly string[]> =>
      allFindings(await treat(team, await examine(store, team)));
    found.push(...(await orUnreadable(`team ${team.name}`, look)));
  }
  return found;
}

/** What is wrong in the data of a team. Shows the progress. */
export async function examine(store: Auditor, team: TeamSummary): Promise<TeamFindings> {
  using progress = openProgress(`traces of ${team.name}`);
  return await examineTeam(store, team.id, (done) => progress.show(done, team.traces));
}

/** Data that cannot be read is a finding too, and does not end the search. */
async function orUnreadable(
  where: string,
  look: () => Promise<readonly string[]>,
): Promise<string[]> {
  try {
    return (await look()).map((finding) => `${where}: ${finding}`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [`${where}: cannot be read: ${reasonOf(error)}`];
  }
}
