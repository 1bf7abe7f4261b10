import type pg from 'pg';
import { abandon, connect } from './connection.ts';
import { ConnectionLost } from './postgres-failures.ts';
import { callOn } from './wire-call.ts';
import type { Ending, Statement } from './wire-call.ts';

/**
 * A connection on which calls are sent without waiting for the one before. The database executes them in this order. It is taken from the
 * pool with the first call, and returned when all have ended. After a lost connection, the next call takes another one.
 */
export class CallConnection {
  readonly #pool: pg.Pool;
  #taken: Taken | null = null;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Throws if there is no connection. Then nothing was sent. */
  async run(statement: Statement): Promise<Ending> {
    this.#taken ??= { client: connect(this.#pool), running: 0, lost: null };
    const taken = this.#taken;
    taken.running += 1;
    try {
      const client = await taken.client;
      const ending = await callOn(client, statement);
      if (ending.error instanceof ConnectionLost) taken.lost ??= ending.error;
      return ending;
    } finally {
      taken.running -= 1;
      if (this.#taken === taken && (taken.lost || taken.running === 0)) this.#taken = null;
      if (taken.running === 0) await giveBack(taken);
    }
  }
}

interface Taken {
  client: Promise<pg.PoolClient>;
  running: number;
  lost: ConnectionLost | null;
}

async function giveBack({ client, lost }: Taken): Promise<void> {
  const taken = await client.catch(() => null);
  if (!taken) return;
  if (lost) await abandon(taken, lost);
  else taken.release();
}
