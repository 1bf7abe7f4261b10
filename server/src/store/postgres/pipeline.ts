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

interface NamedStatement {
  text: string;
  /** Empty if it is not prepared. */
  name: string;
  values: Values;
}

/** What a statement has returned: the command that PostgreSQL names, and the values of the first row as text. */
export interface Answer {
  command: string;
  row: readonly (string | null)[] | null;
}

/** The statements that succeeded, and the error of the one after them. */
export interface Answers {
  answers: readonly Answer[];
  error: Error | null;
}

/**
 * Statements that are sent in one piece and answered in one piece. The driver's own pipelining sends and answers each statement
 * separately, which takes more system calls and more time in both processes.
 */
class Pipeline extends pg.Query {
  /** Read by the driver, which also wraps the callback to end the timer. */
  readonly query_timeout = limits.postgresAnswerMsMax;
  callback: (error: Error | null) => void;
  readonly answers: Answer[] = [];
  readonly #statements: readonly NamedStatement[];
  #wire: Wire | null = null;
  #row: Answer['row'] = null;

  constructor(statements: readonly NamedStatement[], onEnd: (error: Error | null) => void) {
    super({ text: '' });
    this.#statements = statements;
    this.callback = onEnd;
  }

  override submit = (connection: unknown): null => {
    const wire = connection as Wire;
    this.#wire = wire;
    wire.stream.cork();
    for (const statement of this.#statements) {
      const { text, name, values } = statement;
      if (name === '' || wire.parsedStatements[name] === undefined) {
        // It may have been prepared and not executed, because it failed.
        if (name !== '') wire.close({ type: 'S', name });
        wire.parse({ text, name });
      }
      wire.bind({ statement: name, values });
      wire.execute();
      // The driver has copied them. When they were kept until the answer, they took several full collections per second under load.
      statement.values = noValues;
    }
    // After an error, the server skips everything up to here.
    wire.sync();
    wire.stream.uncork();
    return null;
  };

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.#row ??= fields;
  }

  handleCommandComplete({ text: command }: { text: string }): void {
    const { name, text } = this.#statements[this.answers.length] ?? unnamed;
    // A statement stays prepared even if its transaction fails later.
    if (name !== '' && this.#wire) this.#wire.parsedStatements[name] = text;
    this.answers.push({ command, row: this.#row });
    this.#row = null;
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(null);
  }
}

const unnamed = { name: '', text: '' };
const noValues: Values = [];

/** Runs statements on one connection, in one round trip. Stops at the first that fails. */
export async function runTogether(
  client: pg.ClientBase,
  statements: readonly Statement[],
): Promise<Answers> {
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  const named = statements.map(([text, values]) => {
    // Those without parameters, such as "begin", take hardly any time to parse.
    const name = values.length === 0 ? undefined : nameFor(client, text);
    return { text, values, name: name ?? '' };
  });
  const pipeline = new Pipeline(named, resolve);
  client.query(pipeline);
  const error = await promise;
  if (isNameUnknown(error)) giveUpNames(client);
  return { answers: pipeline.answers, error: error && sortError(error) };
}
