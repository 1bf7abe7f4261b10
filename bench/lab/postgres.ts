import { makePostgres } from '../../server/test/support/postgres.ts';
import { fillDatabase, withKey } from './lab.ts';
import type { Dataset } from './lab.ts';

/** A real PostgreSQL of its own on the loopback. Its data go away with it, also where the bench is killed. */
export interface BenchPostgres {
  emptyDatabase(name: string): Promise<Dataset>;
  filledDatabase(traces: number): Promise<Dataset>;
  stop(): Promise<void>;
}

/** PostgreSQL's own defaults, but for the memory, which is far below what anyone gives it who means it. Every commit is synced. */
const settings = {
  shared_buffers: '256MB',
  fsync: 'on',
  synchronous_commit: 'on',
  deadlock_timeout: '1s',
};

export async function startPostgres(): Promise<BenchPostgres> {
  const postgres = makePostgres(settings);
  await postgres.start();
  return {
    async emptyDatabase(name) {
      return withKey(`postgres-${name}`, await postgres.createDatabase(), 0);
    },
    async filledDatabase(traces) {
      const url = await postgres.createDatabase();
      await fillDatabase(url, traces);
      // What PostgreSQL would do by itself in the next minutes, so that it does not fall into a measurement.
      await postgres.sql(url, 'vacuum (analyze)');
      await postgres.sql(url, 'checkpoint');
      return withKey(`postgres-${traces}`, url, traces);
    },
    stop: () => postgres.stop(),
  };
}
