import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { Dialect, Result, Sql, Statement, Steps, Values } from '../sql.ts';
import { retryWhileBusy } from './connection.ts';

const dialect: Dialect = {
  isAmong: (column, parameter) => `${column} in (select value from json_each(${parameter}))`,
  counterOfTeam: 'c.team_no = t.no',
  firstMarks: (teamId, timeZone) => ({
    text: 'update teams set time_zone = ?2 where id = ?1',
    values: [teamId, timeZone],
  }),
};

export function openSql(db: DatabaseSync, reading: DatabaseSync): Sql {
  const writes = openStatements(db);
  const reads = openStatements(reading);
  return {
    ...dialect,
    async all(text, values = []) {
      return reads({ text, values }).rows;
    },
    // The lock of a writing transaction is on the whole file.
    transaction: (steps) => retryWhileBusy(db, () => runSteps(steps(), writes)),
  };
}

/** Runs the steps in the caller's transaction. */
export function runSteps<T>(steps: Steps<T>, execute: Execute): T {
  for (let step = steps.next(); ; step = steps.next(execute(step.value))) {
    if (step.done) return step.value;
  }
}

type Execute = (statement: Statement) => Result;

/** Runs statements on one connection. Each text is prepared when it is first used. */
export function openStatements(db: DatabaseSync): Execute {
  const prepared = new Map<string, StatementSync>();
  return ({ text, values, isUnprepared = false }) => {
    const known = prepared.get(text) ?? db.prepare(text);
    if (!isUnprepared) prepared.set(text, known);
    return resultOf(known, values);
  };
}

function resultOf(prepared: StatementSync, values: Values): Result {
  const inputs = values.map((value) =>
    Array.isArray(value) ? JSON.stringify(value) : (value as SQLInputValue),
  );
  if (prepared.columns().length === 0) {
    return { rows: [], changes: Number(prepared.run(...inputs).changes) };
  }
  const rows = prepared.all(...inputs);
  return { rows, changes: rows.length };
}
