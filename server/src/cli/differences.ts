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
  for (const { id, name, traces } of teams) {
    using progress = openProgress(`traces of ${name}`);
    const report = verifyTeam(store, id, (done) => progress.show(done, traces));
    found.push(...(await findings(`team ${name}`, async () => (await report).differences)));
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
