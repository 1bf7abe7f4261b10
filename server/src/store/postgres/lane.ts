import type pg from 'pg';
import { abandon, connect } from './connection.ts';
import { callOn } from './wire-call.ts';
import type { Ending, Statement } from './wire-call.ts';

/**
 * A connection on which transactions are sent without waiting for the one before. The database executes them in this order. The
 * connection returns to the pool when all have ended.
 */
export class Lane {
  readonly #client: Promise<pg.PoolClient>;
  #running = 0;
  #error: Error | null = null;

  constructor(pool: pg.Pool) {
    this.#client = connect(pool);
  }

  /** Whether another transaction may follow. */
  get isOpen(): boolean {
    return this.#running > 0 && this.#error === null;
  }

  /** Throws if there is no connection. Then nothing was sent. */
  async run(statement: Statement): Promise<Ending> {
    this.#running += 1;
    let client: pg.PoolClient;
    try {
      client = await this.#client;
    } catch (error) {
      this.#running = 0;
      throw error;
    }
    const result = await callOn(client, statement);
    this.#running -= 1;
    this.#error ??= result.error;
    if (this.#running === 0) await this.#end(client);
    return result;
  }

  async #end(client: pg.PoolClient): Promise<void> {
    if (this.#error) await abandon(client, this.#error);
    else client.release();
  }
}
