import pg from 'pg';
import { limits } from '../../limits.ts';
import type { StoreOptions } from '../store.ts';
import { ConnectionLost, asFailure, isNameUnknown, sortError } from './postgres-failures.ts';
import { allowNames, giveUpNames, nameFor } from './statement-names.ts';

export type Values = readonly unknown[];
export type Row = Record<string, unknown>;

/** Connections to one database: some that write and some that read, so that neither wait for the other. */
export interface Pools {
  writing: pg.Pool;
  reading: pg.Pool;
  /** For reads that keep a connection while their caller takes the answer. */
  wideReading: pg.Pool;
  /** How every transaction that writes begins. */
  begin: string;
  end(): Promise<void>;
}

/** How the connections of servers are called in the database, and those of commands. */
export const serverName = 'tracetally';
const toolName = 'tracetally command';

export function openPools(url: string, role: StoreOptions['role']): Omit<Pools, 'begin'> {
  const shown = { application_name: role === 'server' ? serverName : toolName };
  // One of them stays open, so that the database shows that a server is at work. Statements whose answers need not be waited for one
  // by one are sent together: a transaction takes two round trips, not eight.
  const writing = openPool(url, limits.postgresWritersMax, { ...shown, min: 1, pipeline: true });
  const reading = openPool(url, limits.postgresReadersMax, shown);
  const wideReading = openPool(url, limits.postgresWideReadersMax, shown);
  const naming = { isOn: true };
  for (const pool of [writing, reading, wideReading]) {
    pool.on('connect', (client) => allowNames(client, naming));
  }
  return {
    writing,
    reading,
    wideReading,
    async end() {
      await Promise.all([writing.end(), reading.end(), wideReading.end()]);
    },
  };
}

function openPool(url: string, max: number, more: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({
    ...more,
    connectionString: withoutOwnName(url),
    max,
    connectionTimeoutMillis: limits.postgresConnectMsMax,
    idleTimeoutMillis: limits.postgresIdleMsMax,
    keepAlive: true,
  });
  // A connection that breaks while nobody uses it is replaced by the pool; one that is in use tells by its next answer.
  // Without a listener either would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** The driver would let a name in the URL win over ours, and by ours servers are known. */
function withoutOwnName(url: string): string {
  if (!url.includes('application_name')) return url;
  const named = new URL(url);
  named.searchParams.delete('application_name');
  return named.href;
}

/**
 * Everything that a transaction rests on is set with its beginning, and nothing with the connection, so that a pooler may stand
 * between. Each statement sees what was committed before it: after the wait for a lock that is what counts.
 */
export function beginWriting(synchronousCommit: string): string {
  return (
    'begin isolation level read committed; ' +
    // On a cluster the rest counts at the nodes too. Elsewhere the name means nothing and does no harm.
    "set local citus.propagate_set_commands = 'local'; " +
    `set local synchronous_commit = ${synchronousCommit}; ` +
    `set local lock_timeout = ${limits.postgresLockMsMax}; ` +
    `set local statement_timeout = ${limits.postgresAnswerMsMax}; ` +
    `set local idle_in_transaction_session_timeout = ${limits.postgresAnswerMsMax}`
  );
}

export async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw sortError(error);
  }
}

/** One statement on one connection. It throws what PostgreSQL said, or `ConnectionLost`. */
export async function run(
  client: pg.ClientBase,
  text: string,
  values: Values = [],
  answerMsMax: number = limits.postgresAnswerMsMax,
): Promise<pg.QueryResult<Row>> {
  try {
    const name = values.length === 0 ? undefined : nameFor(client, text);
    const query = { text, values: values as unknown[], query_timeout: answerMsMax };
    return await client.query<Row>(name === undefined ? query : { ...query, name });
  } catch (error) {
    if (isNameUnknown(error)) giveUpNames(client);
    throw sortError(error);
  }
}

/** Gives a connection back after an error, clean or not at all. */
export async function abandon(client: pg.PoolClient, error: unknown): Promise<void> {
  if (error instanceof ConnectionLost) {
    client.release(true);
    return;
  }
  try {
    await run(client, 'rollback');
    client.release();
  } catch {
    client.release(true);
  }
}

/** One statement that only reads. A connection that turns out to be dead is no reason to fail: it is asked again on another. */
export async function ask(
  pool: pg.Pool,
  text: string,
  values: Values,
  answerMsMax?: number,
): Promise<Row[]> {
  try {
    return await askOnce(pool, text, values, answerMsMax).catch((error: unknown) => {
      if (error instanceof ConnectionLost || isNameUnknown(error))
        return askOnce(pool, text, values, answerMsMax);
      throw error;
    });
  } catch (error) {
    throw asFailure(error);
  }
}

async function askOnce(
  pool: pg.Pool,
  text: string,
  values: Values,
  answerMsMax?: number,
): Promise<Row[]> {
  const client = await connect(pool);
  try {
    const { rows } = await run(client, text, values, answerMsMax);
    client.release();
    return rows;
  } catch (error) {
    client.release(error instanceof ConnectionLost);
    throw error;
  }
}

/** Runs the work in one transaction. Its commit may stay in doubt: for the small tables, where a repetition does no harm. */
export async function inTransaction<T>(
  pool: pg.Pool,
  begin: string,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  try {
    const client = await connect(pool);
    try {
      await run(client, begin);
      const result = await work(client);
      await run(client, 'commit');
      client.release();
      return result;
    } catch (error) {
      await abandon(client, error);
      throw error;
    }
  } catch (error) {
    throw asFailure(error);
  }
}
