import { ask } from './connection.ts';
import type { Pools } from './connection.ts';

/**
 * Adds up a number over all nodes of a Citus cluster, since each node reports only its own data and connections. Without Citus it is
 * the number of the one server.
 */
export async function sumOverNodes(
  { reading }: Pick<Pools, 'reading'>,
  selectNumber: string,
): Promise<number> {
  const [place] = await ask(reading, readIsCluster, []);
  const text =
    place?.['is_cluster'] === true
      ? `select sum(result::numeric) as number from run_command_on_all_nodes($node$${selectNumber}$node$) where success`
      : `select (${selectNumber}) as number`;
  const [row] = await ask(reading, text, []);
  return Number(row?.['number'] ?? 0);
}

const readIsCluster = "select to_regproc('run_command_on_all_nodes') is not null as is_cluster";
