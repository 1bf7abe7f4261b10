import pg from 'pg';
import type { Duplex } from 'node:stream';
import { limits } from '../../limits.ts';
import type { Values } from './connection.ts';
import { isNameUnknown, sortError } from './postgres-failures.ts';
import { giveUpNames, nameFor } from './statement-names.ts';

/** A statement and its parameters: text, bytes or null, which the driver need not convert. */
export type Statement = [text: string, values: Values];

/** The driver's connection, as far as its own queries use it. */
interface Wire {
  stream: Duplex;
  parsedStatements: Record<string, string>;
  close(message: { type: 'S'; name: string }): void;
  parse(message: { text: string; name: string }): void;
  bind(message: { statement: string; values: Values }): void;
  execute(): void;
  sync(): void;
}

/** What a statement has returned: the values of its first row as text. */
export type Answer = readonly (string | null)[];

/** How a statement has ended. There can be both, since the commit comes after the answer. */
export interface Ending {
  answer: Answer | null;
  error: Error | null;
}

/**
 * A statement that is a transaction by itself, sent in one piece. Another one may be sent before it is answered. The driver's own queries
 * take more system calls, and keep the parameters until the answer.
 */
class WireCall extends pg.Query {
  /** Read by the driver, which also wraps the callback to end the timer. */
  readonly query_timeout = limits.postgresAnswerMsMax;
  callback: (error: Error | null) => void;
  answer: Answer | null = null;
  readonly #text: string;
  /** Empty if the statement is not prepared. */
  readonly #name: string;
  #values: Values;
  #wire: Wire | null = null;
  #row: Answer = [];

  constructor([text, values]: Statement, name: string, onEnd: (error: Error | null) => void) {
    super({ text: '' });
    this.#text = text;
    this.#name = name;
    this.#values = values;
    this.callback = onEnd;
  }

  override submit = (connection: unknown): null => {
    const wire = connection as Wire;
    this.#wire = wire;
    const name = this.#name;
    wire.stream.cork();
    if (name === '' || wire.parsedStatements[name] === undefined) {
      // It may have been prepared and not executed, because it failed.
      if (name !== '') wire.close({ type: 'S', name });
      wire.parse({ text: this.#text, name });
    }
    wire.bind({ statement: name, values: this.#values });
    // The driver has copied them. When they were kept until the answer, they took several full collections per second under load.
    this.#values = [];
    wire.execute();
    wire.sync();
    wire.stream.uncork();
    return null;
  };

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.#row = fields;
  }

  handleCommandComplete(): void {
    if (this.#name !== '' && this.#wire) this.#wire.parsedStatements[this.#name] = this.#text;
    this.answer = this.#row;
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(null);
  }
}

/** Runs a statement that is a transaction by itself, in one round trip. */
export async function callOn(client: pg.ClientBase, statement: Statement): Promise<Ending> {
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  const call = new WireCall(statement, nameFor(client, statement[0]) ?? '', resolve);
  client.query(call);
  const error = await promise;
  if (isNameUnknown(error)) giveUpNames(client);
  return { answer: call.answer, error: error && sortError(error) };
}
