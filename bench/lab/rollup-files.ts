import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runProgram } from './children.ts';

const derivedTables = [
  'rollup_rows',
  'rollup_groups',
  'rollup_days',
  'team_marks',
  'trace_lookups',
];

/** The part of a SQLite file that rollups and lookups use, and the size of the file in bytes. */
export function derivedShare(path: string): { share: number; bytes: number } {
  using db = new DatabaseSync(path, { readOnly: true });
  const sizes = db.prepare('select name, sum(pgsize) as bytes from dbstat group by name').all();
  const sizeOf = (isCounted: (name: string) => boolean): number =>
    sizes
      .filter(({ name }) => isCounted(String(name)))
      .reduce((sum, { bytes }) => sum + Number(bytes), 0);
  const bytes = sizeOf(() => true);
  return { share: sizeOf((name) => derivedTables.includes(name)) / bytes, bytes };
}

/** Resolves when every trace of a SQLite file is rolled up. */
export async function untilRolledUp(path: string): Promise<void> {
  using db = new DatabaseSync(path, { readOnly: true });
  const behind = db.prepare(
    `select count(*) as teams from team_marks m join team_counters c using (team_no)
     where m.is_active = 1 and (m.hot_seq < c.last_seq or m.wide_seq < c.last_seq)`,
  );
  await untilNoneIsBehind(async () => Number(behind.get()?.['teams']));
}

const patienceMs = 120_000;

/** Asks again and again how many teams have traces that are not rolled up yet. */
export async function untilNoneIsBehind(countTeams: () => Promise<number>): Promise<void> {
  const startMs = performance.now();
  while ((await countTeams()) > 0) {
    if (performance.now() - startMs > patienceMs) throw new Error('the rollups do not catch up');
    await delay(20);
  }
}

/** The median time of questions about 30 days and about a year. */
export async function questionTimes(
  path: string,
  times: number,
): Promise<{ monthMs: number; yearMs: number }> {
  const program = fileURLToPath(new URL('question-control.ts', import.meta.url));
  const printed = await runProgram(process.execPath, [program, path, String(times)]);
  return JSON.parse(printed) as { monthMs: number; yearMs: number };
}
