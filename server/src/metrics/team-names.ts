import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';

export type FindTeamName = (id: string) => Promise<string | null>;

/**
 * The names of the teams that are shown, each asked of the database once. Metrics matter most while the database does not answer, so
 * they wait for names only briefly. A team without a name is left out until the next time.
 */
export function openTeamNames(
  find: FindTeamName,
  waitMsMax: number = limits.metricsNamesMsMax,
): (ids: Iterable<string>) => Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  let asking: Promise<void> | null = null;

  async function learn(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const name = await find(id).catch(() => null);
      if (name !== null) names.set(id, name);
    }
    asking = null;
  }

  return async (ids) => {
    const unknown = [...ids].filter((id) => !names.has(id));
    if (unknown.length > 0) {
      asking ??= learn(unknown);
      await Promise.race([asking, sleep(waitMsMax, null, { ref: false })]);
    }
    return names;
  };
}
