import type pg from 'pg';
import { openClock } from '../../core/clock.ts';
import { Failure, OperatorError } from '../../errors.ts';
import type { Store, StoreOptions } from '../store.ts';
import { openAuditor } from './auditor.ts';
import { checkServer } from './check-server.ts';
import { ask, beginWriting, connect, openPools, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { openTeamsAndKeys } from './teams-and-keys.ts';
import { openKeyUses } from './key-uses.ts';
import { migrate } from './migrate.ts';
import { explainOpening, addressOf } from './address.ts';
import type { Address } from './address.ts';
import { openTransfer } from './transfer.ts';
import { openReader } from './reader.ts';
import { openSignInCodes } from './sign-in-codes.ts';
import { openStoreBatch } from './store-batch.ts';
import { Writer } from './writer.ts';

export interface PostgresOptions extends StoreOptions {
  url: string;
}

/** Several servers can use one database. Locks in the database prevent conflicts. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { url, clock, role, mustExist = false, onClockJump = () => {} } = options;
  const address = addressOf(url);
  const open = openPools(url, role);
  try {
    const begin = await prepare(open.writing, address, mustExist);
    return assemble({ ...open, begin }, openClock(clock), onClockJump);
  } catch (error) {
    await open.end();
    throw error instanceof OperatorError ? error : explainOpening(error, address);
  }
}

/** Checks the server and migrates the schema. Returns the statements that begin a transaction. */
async function prepare(pool: pg.Pool, address: Address, mustExist: boolean): Promise<string> {
  const client = await connect(pool);
  try {
    const begin = beginWriting(await checkServer(client, address.name));
    // A pooler in between may not support transactions: fail now instead of at the first write.
    await run(client, begin);
    await run(client, 'rollback');
    await migrate(client, address.name, mustExist);
    client.release();
    return begin;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** A replica is read-only too. */
const readAccess = "select current_setting('transaction_read_only') as read_only";

function assemble(
  pools: Pools,
  clock: ReturnType<typeof openClock>,
  onClockJump: NonNullable<StoreOptions['onClockJump']>,
): Store {
  const writer = new Writer(openStoreBatch(pools, clock, onClockJump));
  const keyUses = openKeyUses(pools);
  return {
    ...openReader(pools),
    ...openTeamsAndKeys(pools),
    ...openSignInCodes(pools),
    ...openAuditor(pools),
    ...openTransfer(pools),
    append: (writes, moreFollow, tell) => writer.append(writes, moreFollow, tell),
    noteKeyUse: (keyId, atUs) => keyUses.note(keyId, atUs),
    async ping() {
      writer.ping();
      const [row] = await ask(pools.reading, readAccess, []);
      if (row?.['read_only'] !== 'off') {
        throw new Failure('store_unavailable', { cause: 'PostgreSQL is read-only' });
      }
    },
    async close() {
      await writer.drain();
      await keyUses.close();
      await pools.end();
    },
  };
}
