import pg from 'pg';
import { OperatorError, messageOf } from '../../errors.ts';
import { stateOf, wordsOf } from './postgres-failures.ts';

/** The location of a database, for messages. */
export interface Address {
  /** The server and database, without the password. */
  name: string;
  user: string;
  host: string;
  port: number;
  database: string;
}

export function addressOf(url: string): Address {
  const { user = '', host, port, database = '' } = unconnectedClient(url);
  return { name: `PostgreSQL at ${host}:${port}/${database}`, user, host, port, database };
}

/** The driver parses every option of a URL and reads the files that it refers to. */
function unconnectedClient(url: string): pg.Client {
  try {
    return new pg.Client({ connectionString: url });
  } catch (error) {
    throw new OperatorError(`The database URL is not valid: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

/** Turns an error into a sentence that an operator can act on. */
export function explainOpening(
  error: unknown,
  { name, user, host, port, database }: Address,
): OperatorError {
  const state = stateOf(error) || stateOf(error instanceof Error ? error.cause : null);
  const words = wordsOf(error);
  const sentence =
    state === '28P01'
      ? `PostgreSQL at ${host}:${port} rejected the password of the user "${user}".`
      : state === '3D000'
        ? `There is no database "${database}" on PostgreSQL at ${host}:${port}. Create it first.`
        : state === ''
          ? `Cannot reach ${name}: ${words}.`
          : `Cannot open ${name}: ${words}.`;
  return new OperatorError(sentence, { cause: error });
}
