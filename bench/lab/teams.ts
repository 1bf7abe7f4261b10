import { makeKey } from '../../server/src/store/teams-and-keys.ts';
import { openStore } from '../../server/src/store/open-store.ts';

const atOnce = 8;

/**
 * Creates teams in a PostgreSQL database, with a key for each. It uses the store directly: running the command line for each of them
 * would take longer than the bench.
 */
export async function makeTeams(url: string, count: number): Promise<string[]> {
  const options = { clock: { kind: 'system' }, role: 'tool' } as const;
  const store = await openStore({ kind: 'postgres', url }, options);
  const keys: string[] = [];
  let begun = 0;
  async function work(): Promise<void> {
    while (begun < count) {
      begun += 1;
      const nowUs = Date.now() * 1000;
      const { team } = await store.ensureTeam(`bench ${begun}`, nowUs);
      const { key, record } = makeKey({ name: null, scope: 'full', nowUs, expiresAtUs: null });
      await store.createKey(team.id, record);
      keys.push(key);
    }
  }
  try {
    await Promise.all(Array.from({ length: atOnce }, work));
    return keys;
  } finally {
    await store.close();
  }
}
