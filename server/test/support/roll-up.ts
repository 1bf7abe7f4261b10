import type { RollSpeed } from '../../src/core/dimensions.ts';
import type { Store } from '../../src/store/store.ts';

export const rollSpeeds: readonly RollSpeed[] = ['hot', 'wide'];

/** Rolls up every trace of these teams, or of all. Returns how many traces were added, counted once for each speed. */
export async function rollUp(store: Store, teamIds?: readonly string[]): Promise<number> {
  let rolled = 0;
  for (const teamId of teamIds ?? (await store.teams(0)).map(({ id }) => id)) {
    for (const speed of rollSpeeds) {
      for (let rows = -1; rows !== 0; rolled += rows)
        rows = await store.roll(teamId, speed, 10_000);
    }
  }
  return rolled;
}
