import type pg from 'pg';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { abandon, connect, run } from './connection.ts';
import type { Row } from './connection.ts';
import { isCancelled } from './postgres-failures.ts';
import type { QueryStatement } from './tally-statements.ts';

/** Every statement of such a transaction sees the same snapshot. */
export const beginSnapshot = 'begin isolation level repeatable read read only';

/** A read that may take long ends by itself, even if the server that asked has gone. */
function beginLongSnapshot(msMax: number): string {
  return `${beginSnapshot}; set local statement_timeout = ${msMax}; set local cursor_tuple_fraction = 1`;
}

/** A snapshot that is read in chunks, so that it is never completely in memory. */
export class LongSnapshot {
  readonly client: pg.PoolClient;
  readonly #untilMs: number;
  readonly #msMax: number;
  /** The transaction ends after the statement that is in progress. */
  #running: Promise<unknown> = Promise.resolve();
  #cursors = 0;

  private constructor(client: pg.PoolClient, msMax: number) {
    this.client = client;
    this.#msMax = msMax;
    this.#untilMs = performance.now() + msMax;
  }

  /** Fails with `question_too_wide` if reading takes longer than this. */
  static async open(pool: pg.Pool, msMax: number): Promise<LongSnapshot> {
    const client = await connect(pool);
    try {
      await run(client, beginLongSnapshot(msMax));
      return new LongSnapshot(client, msMax);
    } catch (error) {
      await abandon(client, error);
      throw error;
    }
  }

  async ask(text: string, values: readonly unknown[], isPrepared = true): Promise<Row[]> {
    if (performance.now() > this.#untilMs) throw new Failure('question_too_wide');
    // PostgreSQL ends the statement first, unless the connection is lost.
    const answerMsMax = this.#msMax + limits.postgresAnswerMsMax;
    const asked = run(this.client, text, values, answerMsMax, isPrepared);
    this.#running = asked.catch(() => {});
    try {
      return (await asked).rows;
    } catch (error) {
      throw isCancelled(error) ? new Failure('question_too_wide', { cause: error }) : error;
    }
  }

  /** Reads the rows of a statement through a cursor. Returns a function that gives the next ones; empty at the end. */
  async cursor({ text, values }: QueryStatement, chunkRows: number): Promise<() => Promise<Row[]>> {
    const name = `rows_${++this.#cursors}`;
    await this.ask(`declare ${name} no scroll cursor for ${text}`, values, false);
    return () => this.ask(`fetch forward ${chunkRows} from ${name}`, []);
  }

  async each(statement: QueryStatement, look: (row: Row) => void): Promise<void> {
    const next = await this.cursor(statement, limits.evaluationChunkRows);
    for (;;) {
      const rows = await next();
      if (rows.length === 0) return;
      for (const row of rows) look(row);
    }
  }

  close(): void {
    void this.#running.then(() => abandon(this.client, null));
  }
}
