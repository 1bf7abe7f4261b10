import { makePostgres } from '../../server/test/support/postgres.ts';
import { fillDatabase, withKey } from './lab.ts';
import type { Dataset } from './lab.ts';
import { untilNoneIsBehind } from './rollup-files.ts';

/** A separate PostgreSQL server on loopback. Its data is removed when it stops, even if the bench is killed. */
export interface BenchPostgres {
  emptyDatabase(name: string): Promise<Dataset>;
  filledDatabase(traces: number): Promise<Dataset>;
  /** Resolves when every trace of a database is rolled up. */
  untilRolledUp(url: string): Promise<void>;
  stop(): Promise<void>;
}

/** PostgreSQL's defaults, except for the memory: the default is far below what is used in production. Every commit is synced. */
const settings = {
  shared_buffers: '256MB',
  fsync: 'on',
  synchronous_commit: 'on',
  deadlock_timeout: '1s',
};

const countBehind = `
  select count(*) as teams from roll_marks m join team_counters c using (team_id)
  where m.is_active and m.seq < c.last_seq`;

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
      // PostgreSQL would do this by itself within minutes, perhaps during a measurement.
      await postgres.sql(url, 'vacuum (analyze)');
      await postgres.sql(url, 'checkpoint');
      return withKey(`postgres-${traces}`, url, traces);
    },
    untilRolledUp: (url) =>
      untilNoneIsBehind(async () => {
        const [row] = await postgres.sql(url, countBehind);
        return Number(row?.['teams']);
      }),
    stop: () => postgres.stop(),
  };
}
