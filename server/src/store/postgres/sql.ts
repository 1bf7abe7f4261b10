import type pg from 'pg';
import type { Dialect, Result, Sql, Statement, Steps } from '../sql.ts';
import { firstGeneration } from '../team-marks.ts';
import { ask, inTransaction, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { ofMarks } from './rollup-statements.ts';

export const dialect: Dialect = {
  isAmong: (column, parameter) => `${column} = any(${parameter})`,
  counterOfTeam: 'c.team_id = t.id',
  firstMarks: (teamId, timeZone) => ({
    text: ofMarks.addMarks,
    values: [teamId, firstGeneration, timeZone, 'true', 0, 0],
  }),
};

export function openSql({ reading, writing, begin }: Pools): Sql {
  return {
    ...dialect,
    all: (text, values = []) => ask(reading, withDollars(text), values),
    transaction: (steps, lockedTable) =>
      inTransaction(writing, begin, async (client) => {
        if (lockedTable !== undefined) {
          await run(client, `lock table ${lockedTable} in share row exclusive mode`);
        }
        return runSteps(client, steps());
      }),
  };
}

/** Runs the steps in the caller's transaction. */
export async function runSteps<T>(client: pg.ClientBase, steps: Steps<T>): Promise<T> {
  for (let step = steps.next(); ; step = steps.next(await execute(client, step.value))) {
    if (step.done) return step.value;
  }
}

async function execute(
  client: pg.ClientBase,
  { text, values, isUnprepared = false }: Statement,
): Promise<Result> {
  const { rows, rowCount } = await run(client, withDollars(text), values, undefined, !isUnprepared);
  return { rows, changes: rowCount ?? 0 };
}

/** PostgreSQL writes parameters as `$1`, `$2` and so on. */
export function withDollars(text: string): string {
  return text.replaceAll('?', '$');
}
