import { eventually } from './eventually.ts';
import type { TestPostgres } from './postgres.ts';

/** The statements that are executed meanwhile, in a database with `log_statement = all`. */
export async function loggedStatements(
  postgres: TestPostgres,
  url: string,
  work: () => Promise<void>,
): Promise<string[]> {
  /** The log comes through a pipe: what stands before a mark is all there when the mark is. */
  const logUntilNow = async () => {
    const mark = `mark ${performance.now()}.`;
    await postgres.sql(url, `select '${mark}'`);
    await eventually('the mark in the log', 120_000, () => postgres.log().includes(mark), 10);
    return postgres.log().split(mark)[0] ?? '';
  };
  const before = (await logUntilNow()).length;
  await work();
  const log = (await logUntilNow()).slice(before);
  const lines = log
    .split('\n')
    .join(' ')
    .split(/LOG: {2}/);
  return lines.filter(
    (line) => /^(statement|execute)/.test(line) && !line.startsWith("statement: select '"),
  );
}
