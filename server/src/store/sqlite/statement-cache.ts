import type { ArrayStatement } from './array-statement.ts';

/** Statements by their text. Few texts occur, but callers choose them, so their number is bounded. */
export class StatementCache {
  readonly #prepare: (sql: string) => ArrayStatement;
  readonly #statements = new Map<string, ArrayStatement>();

  constructor(prepare: (sql: string) => ArrayStatement) {
    this.#prepare = prepare;
  }

  get(sql: string): ArrayStatement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      if (this.#statements.size >= statementsMax) this.#statements.clear();
      this.#statements.set(sql, (statement = this.#prepare(sql)));
    }
    return statement;
  }
}

const statementsMax = 100;
