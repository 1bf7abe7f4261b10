import { limits } from '../../limits.ts';
import { ask } from './connection.ts';
import type { Pools } from './connection.ts';
import { tablesByTeam } from './tables.ts';

const readNodes = `
  select t.team_id, p.groupid as node
  from unnest($1::uuid[]) as t(team_id) join pg_dist_placement p
    on p.shardid = get_shard_id_for_distribution_column('${tablesByTeam[0]}', t.team_id)`;

/** The nodes of a cluster that have the data of the teams. A team may be moved at any time. */
export class TeamNodes {
  readonly #pools: Pick<Pools, 'reading'>;
  readonly #byTeam = new Map<string, number>();

  constructor(pools: Pick<Pools, 'reading'>) {
    this.#pools = pools;
  }

  /** Null if it is not known yet. */
  nodeOf(teamId: string): number | null {
    return this.#byTeam.get(teamId) ?? null;
  }

  /** Reads the nodes of these teams that are not known. */
  async learn(teamIds: ReadonlySet<string>): Promise<void> {
    const unknown = [...teamIds].filter((teamId) => !this.#byTeam.has(teamId));
    if (unknown.length === 0) return;
    const rows = await ask(this.#pools.reading, readNodes, [unknown]);
    if (this.#byTeam.size >= limits.postgresTeamNodesKeptMax) this.#byTeam.clear();
    for (const row of rows) this.#byTeam.set(row['team_id'] as string, row['node'] as number);
  }

  forget(teamIds: Iterable<string>): void {
    for (const teamId of teamIds) this.#byTeam.delete(teamId);
  }
}
