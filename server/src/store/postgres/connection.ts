import pg from 'pg';
import { limits } from '../../limits.ts';
import type { StoreOptions } from '../store.ts';
import { ConnectionLost, asFailure, isNameUnknown, sortError } from './postgres-failures.ts';
import { allowNames, giveUpNames, nameFor } from './statement-names.ts';
import type { Naming } from './statement-names.ts';

export type Values = readonly unknown[];
export type Row = Record<string, unknown>;

/** Connections to one database. Writes and reads have separate pools, so that they do not wait for each other. */
export interface Pools {
  writing: pg.Pool;
  reading: pg.Pool;
  /** For reads that keep a connection until the caller has received the whole reply, and for questions that take long. */
  wideReading: pg.Pool;
  /** Whether statements are prepared by name. */
  naming: Naming;
  begin: Begin;
  synchronousCommit: string;
  end(): Promise<void>;
}

/** What begins every writing transaction: texts that are sent one after the other. */
export type Begin = readonly string[];

/** The `application_name` of connections: for servers, and for commands. */
export const serverName = 'tracetally';
const toolName = 'tracetally command';

export function openPools(
  url: string,
  role: StoreOptions['role'],
): Omit<Pools, 'begin' | 'synchronousCommit'> {
  const shown = shownAs(role);
  // One connection stays open, so that commands can see that a server is running. Statements are pipelined if they do not depend on
  // earlier results: a transaction takes two round trips instead of eight.
  const writing = openPool(url, limits.postgresWritersMax, { ...shown, min: 1, pipeline: true });
  const reading = openPool(url, limits.postgresReadersMax, { ...shown, pipeline: true });
  const wideMax = limits.postgresWideReadersMax + limits.postgresEvaluationsMax;
  const wideReading = openPool(url, wideMax, shown);
  const naming: Naming = { isOn: true };
  for (const pool of [writing, reading, wideReading]) {
    pool.on('connect', (client) => allowNames(client, naming));
  }
  return {
    writing,
    reading,
    wideReading,
    naming,
    async end() {
      await Promise.all([writing.end(), reading.end(), wideReading.end()]);
    },
  };
}

/** The connection of the rolling thread. */
export function openRollingPool(url: string, role: StoreOptions['role'], naming: Naming): pg.Pool {
  const pool = openPool(url, 1, { ...shownAs(role), pipeline: true });
  pool.on('connect', (client) => allowNames(client, naming));
  return pool;
}

function shownAs(role: StoreOptions['role']): pg.PoolConfig {
  return { application_name: role === 'server' ? serverName : toolName };
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
  // The pool replaces an idle connection that breaks. If it breaks while in use, the next statement fails.
  // Without these listeners either error would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** The driver would prefer a name in the URL to ours, and servers are recognized by ours. */
function withoutOwnName(url: string): string {
  if (!url.includes('application_name')) return url;
  const named = new URL(url);
  named.searchParams.delete('application_name');
  return named.href;
}

/**
 * All settings are made per transaction and none per connection, so that a connection pooler can be used. With read committed, each
 * statement sees what was committed before it, which is needed after waiting for a lock.
 */
export function beginWriting({ synchronousCommit, hasCitus }: ServerTraits): Begin {
  const settings = Object.entries(settingsOf(synchronousCommit)).map(
    ([name, value]) => `set local ${name} = ${value}`,
  );
  if (!hasCitus) return [[beginOnly, ...settings].join('; ')];
  // The first setting makes the others apply on the nodes too. For each of them Citus sends the whole text that contained it to the nodes,
  // so every setting is a text of its own.
  return [beginOnly, "set local citus.propagate_set_commands = 'local'", ...settings];
}

/** What the server is like, as far as transactions depend on it. */
export interface ServerTraits {
  /** The value of `synchronous_commit` to use. */
  synchronousCommit: string;
  hasCitus: boolean;
}

export async function beginOn(client: pg.ClientBase, begin: Begin): Promise<void> {
  await Promise.all(begin.map((text) => run(client, text)));
}

export const beginOnly = 'begin isolation level read committed';

/** The settings of a writing transaction. */
export function settingsOf(synchronousCommit: string) {
  return {
    synchronous_commit: synchronousCommit,
    lock_timeout: String(limits.postgresLockMsMax),
    statement_timeout: String(limits.postgresAnswerMsMax),
    idle_in_transaction_session_timeout: String(limits.postgresAnswerMsMax),
  };
}

export async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw sortError(error);
  }
}

/**
 * Runs one statement on one connection. Throws PostgreSQL's error, or `ConnectionLost`. Statements with parameters are prepared, except
 * those of which there are too many to keep.
 */
export async function run(
  client: pg.ClientBase,
  text: string,
  values: Values = [],
  answerMsMax: number = limits.postgresAnswerMsMax,
  isPrepared = true,
): Promise<pg.QueryResult<Row>> {
  try {
    const name = values.length === 0 || !isPrepared ? undefined : nameFor(client, text);
    const query = { text, values: values as unknown[], query_timeout: answerMsMax };
    return await client.query<Row>(name === undefined ? query : { ...query, name });
  } catch (error) {
    if (isNameUnknown(error)) giveUpNames(client);
    throw sortError(error);
  }
}

/** Returns a connection to the pool after an error, rolled back, or closes it. */
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

/** Runs one read-only statement. If the connection is lost, it is retried once on another. */
export async function ask(
  pool: pg.Pool,
  text: string,
  values: Values,
  answerMsMax?: number,
  isPrepared?: boolean,
): Promise<Row[]> {
  async function askOnce(): Promise<Row[]> {
    const client = await connect(pool);
    try {
      const { rows } = await run(client, text, values, answerMsMax, isPrepared);
      client.release();
      return rows;
    } catch (error) {
      client.release(error instanceof ConnectionLost);
      throw error;
    }
  }

  try {
    return await askOnce().catch((error: unknown) => {
      if (error instanceof ConnectionLost || isNameUnknown(error)) return askOnce();
      throw error;
    });
  } catch (error) {
    throw asFailure(error);
  }
}

/**
 * Runs the work in one transaction. If the reply to the commit is lost, it is not known whether the commit succeeded. So this is only
 * for the small tables, for which repeating a write is harmless.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  begin: Begin,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  try {
    const client = await connect(pool);
    try {
      await beginOn(client, begin);
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
