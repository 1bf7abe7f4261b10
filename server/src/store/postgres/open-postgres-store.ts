import type pg from 'pg';
import { openClock } from '../../core/clock.ts';
import { Failure, OperatorError } from '../../errors.ts';
import type { Store, StoreOptions } from '../store.ts';
import { openAuditor } from './auditor.ts';
import { checkServer } from './check-server.ts';
import { ask, beginWriting, connect, openPools } from './connection.ts';
import type { Pools } from './connection.ts';
import { openDirectory } from './directory.ts';
import { openKeyUses } from './key-uses.ts';
import { migrate } from './migrate.ts';
import { explainOpening, placeOf } from './place.ts';
import type { Place } from './place.ts';
import { openMover } from './mover.ts';
import { openReader } from './reader.ts';
import { openWriter } from './writer.ts';

export interface PostgresOptions extends StoreOptions {
  url: string;
}

/** Many servers may work on one database: what they must not do at once, the database itself prevents. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { url, clock, role, mustExist = false, onClockJump = () => {} } = options;
  const place = placeOf(url);
  const open = openPools(url, role);
  try {
    const begin = beginWriting(await prepare(open.writing, place, mustExist));
    return assemble({ ...open, begin }, openClock(clock), onClockJump);
  } catch (error) {
    await open.end();
    throw error instanceof OperatorError ? error : explainOpening(error, place);
  }
}

/** Checks the server and brings the schema up. Answers how commits are to be synced. */
async function prepare(pool: pg.Pool, place: Place, mustExist: boolean): Promise<string> {
  const client = await connect(pool);
  try {
    const synchronousCommit = await checkServer(client, place.name);
    await migrate(client, place.name, mustExist);
    client.release();
    return synchronousCommit;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

function assemble(
  pools: Pools,
  clock: ReturnType<typeof openClock>,
  onClockJump: NonNullable<StoreOptions['onClockJump']>,
): Store {
  const writer = openWriter(pools, clock, onClockJump);
  const keyUses = openKeyUses(pools);
  return {
    ...openReader(pools),
    ...openDirectory(pools),
    ...openAuditor(pools),
    ...openMover(pools),
    append: (writes, moreFollow, tell) => writer.append(writes, moreFollow, tell),
    noteKeyUse: (keyId, atUs) => keyUses.note(keyId, atUs),
    async ping() {
      writer.ping();
      const [row] = await ask(pools.reading, 'select pg_is_in_recovery() as is_replica', []);
      if (row?.['is_replica'] !== false) {
        throw new Failure('store_unavailable', { cause: 'PostgreSQL has become a replica' });
      }
    },
    async close() {
      await writer.drain();
      await keyUses.close();
      await pools.end();
    },
  };
}
