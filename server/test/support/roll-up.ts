import type { Store } from '../../src/store/store.ts';

/** Rolls up every trace of these teams, or of all. Returns how many were added. */
export async function rollUp(store: Store, teamIds?: readonly string[]): Promise<number> {
  let rolled = 0;
  for (const teamId of teamIds ?? (await store.teams(0)).map(({ id }) => id)) {
    for (let rows = -1; rows !== 0; rolled += rows) rows = await store.roll(teamId, 10_000);
  }
  return rolled;
}
