/**
 * What the small tables (teams, API keys, sign-in, prices, reprice runs) need from a database, so that they are written once. Statements
 * use SQL that both databases understand, with parameters `?1`, `?2` and so on; what differs is in `Dialect`.
 */
export interface Sql extends Dialect {
  /** Runs one statement that only reads. */
  all(text: string, values?: Values): Promise<readonly Row[]>;
  /**
   * Runs the steps in one transaction. When it resolves, the commit is on disk. The steps may be run more than once. `lockedTable` names a
   * table that no other transaction may change until the commit.
   */
  transaction<T>(steps: () => Steps<T>, lockedTable?: string): Promise<T>;
}

/**
 * The steps of a transaction: a generator that yields statements and gets their results. SQLite runs all steps at once, since other code
 * uses the same connection; PostgreSQL waits for each reply.
 */
export type Steps<T> = Generator<Statement, T, Result>;

export interface Statement {
  text: string;
  values: Values;
  /** Set for texts of many lengths, which would fill the memory for prepared statements. */
  isUnprepared?: boolean;
}

export type Values = readonly (Value | readonly string[])[];
export type Value = string | number | null | Uint8Array;

/** Large integers may be text. */
export type Row = Readonly<Record<string, unknown>>;

export interface Result {
  /** What the statement reads or returns. */
  rows: readonly Row[];
  /** How many rows it has changed. */
  changes: number;
}

export interface Dialect {
  /** The condition that a column has one of the values of a parameter that is a list. */
  isAmong(column: string, parameter: string): string;
  /** The condition that joins the row `c` of `team_counters` to the team `t`. */
  counterOfTeam: string;
  /** Adds the marks of a new team. */
  firstMarks(teamId: string, timeZone: string): Statement;
}

export function statement(text: string, values: Values = []): Statement {
  return { text, values };
}

/** Runs one statement in a transaction of its own. */
export function write(sql: Sql, text: string, values: Values): Promise<Result> {
  return sql.transaction(function* (): Steps<Result> {
    return yield statement(text, values);
  });
}

export function numberOrNull(value: unknown): number | null {
  return value === null ? null : Number(value);
}
