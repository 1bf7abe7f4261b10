import { limits } from '../../limits.ts';
import { ask } from './connection.ts';
import type { Pools } from './connection.ts';
import { tablesByTeam } from './tables.ts';

const readNode = `
  select groupid as node from pg_dist_placement
  where shardid = get_shard_id_for_distribution_column('${tablesByTeam[0]}', $1::uuid)`;

/** The nodes of a cluster that have the data of the teams, as far as they are known. A team may be moved at any time. */
export class TeamNodes {
  readonly #pools: Pick<Pools, 'reading'>;
  readonly #byTeam = new Map<string, number>();

  constructor(pools: Pick<Pools, 'reading'>) {
    this.#pools = pools;
  }

  nodeOf(teamId: string): number | null {
    return this.#byTeam.get(teamId) ?? null;
  }

  /** Never rejects. */
  async learn(teamId: string): Promise<void> {
    if (this.#byTeam.has(teamId)) return;
    try {
      const [row] = await ask(this.#pools.reading, readNode, [teamId]);
      if (!row) return;
      if (this.#byTeam.size >= limits.postgresCountersKeptMax) this.#byTeam.clear();
      this.#byTeam.set(teamId, row['node'] as number);
    } catch {
      // The next write of the team tries again.
    }
  }

  forget(teamId: string): void {
    this.#byTeam.delete(teamId);
  }
}
