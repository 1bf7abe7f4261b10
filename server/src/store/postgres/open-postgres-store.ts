import type pg from 'pg';
import { Failure, OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { openSmallTables } from '../small-tables.ts';
import type { Store, StoreOptions } from '../store.ts';
import { openAuditor } from './auditor.ts';
import { checkServer } from './check-server.ts';
import { distributedTables } from './cluster.ts';
import { ask, beginOn, beginWriting, connect, openPools, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { openKeyUses } from './key-uses.ts';
import { migrate } from './migrate.ts';
import { explainOpening, addressOf } from './address.ts';
import type { Address } from './address.ts';
import { openTransfer } from './transfer.ts';
import { openReader } from './reader.ts';
import { openOnDemandRoller } from './rebuild.ts';
import { openRepricer } from './repricer.ts';
import { noRoller, openRoller } from './roller-client.ts';
import { openSql } from './sql.ts';
import { openStoreBatch } from './store-batch.ts';
import { ensureStoreFunction } from './store-function.ts';
import { KnownRecordTypes, readRecordTypes } from './trace-records.ts';
import type { RecordTypes } from './trace-records.ts';
import { Writer } from './writer.ts';

export interface PostgresOptions extends StoreOptions {
  url: string;
}

/** Several servers can use one database. Locks in the database prevent conflicts. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { url, role } = options;
  const address = addressOf(url);
  const open = openPools(url, role);
  try {
    const { begin, synchronousCommit, ...prepared } = await prepare(open.writing, address, options);
    return assemble({ ...open, begin, synchronousCommit }, prepared, options);
  } catch (error) {
    await open.end();
    throw error instanceof OperatorError ? error : explainOpening(error, address);
  }
}

interface Prepared extends Pick<Pools, 'begin' | 'synchronousCommit'> {
  types: RecordTypes;
  areDistributed: boolean;
}

/** Checks the server and migrates the schema. */
async function prepare(
  pool: pg.Pool,
  address: Address,
  { role, mustExist = false }: PostgresOptions,
): Promise<Prepared> {
  const client = await connect(pool);
  try {
    const traits = await checkServer(client, address.name);
    const begin = beginWriting(traits);
    // A pooler in between may not support transactions: fail now instead of at the first write.
    await beginOn(client, begin);
    await run(client, 'rollback');
    await migrate(client, address.name, mustExist);
    const areDistributed = (await distributedTables(client)).size > 0;
    // Tools may be run by a user who must not change anything.
    if (role === 'server') await ensureStoreFunction(client, areDistributed).catch(passIfRefused);
    const types = await readRecordTypes(client);
    client.release();
    const { synchronousCommit } = traits;
    return { begin, synchronousCommit, types, areDistributed };
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** A node of a cluster may not respond. Then the first write tries again. */
function passIfRefused(error: unknown): void {
  if (error instanceof OperatorError) throw error;
}

/** A replica is read-only too. */
const readAccess = "select current_setting('transaction_read_only') as read_only";

function assemble(
  pools: Pools,
  { types, areDistributed }: Pick<Prepared, 'types' | 'areDistributed'>,
  options: PostgresOptions,
): Store {
  const { url, role, clock, onClockJump = () => {}, onRollFailed = () => {} } = options;
  const { onRoll, onCommit } = options;
  const { rolling = 'automatic', rollTailRows = limits.rollTailRows } = options;
  const { begin, naming } = pools;
  const roller =
    rolling === 'manual'
      ? noRoller
      : openRoller(
          {
            url,
            role,
            begin,
            naming,
            rowsMin: rollTailRows,
            isReporting: onRoll !== undefined,
          },
          onRollFailed,
          onRoll ?? (() => {}),
        );
  const onStored = roller.written;
  const tables = { areDistributed, types: new KnownRecordTypes(pools.writing, types) };
  const store = openStoreBatch(pools, clock, tables, { onClockJump, onStored });
  const writer = new Writer(store, areDistributed, onCommit);
  const sql = openSql(pools);
  const keyUses = openKeyUses(sql);
  return {
    ...openReader(pools),
    ...openOnDemandRoller(pools),
    ...openSmallTables(sql),
    ...openRepricer(pools),
    ...openAuditor(pools),
    ...openTransfer(pools, onStored),
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
      await roller.close();
      await keyUses.close();
      await pools.end();
    },
  };
}
