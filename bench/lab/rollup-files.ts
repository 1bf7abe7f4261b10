import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { rollupPathOf } from '../../server/src/store/sqlite/rollup-file.ts';
import { runProgram } from './children.ts';

/** The part of both files of a SQLite store that rollups and lookups use, and the size of the files in bytes. No server may run. */
export function derivedShare(path: string): { share: number; bytes: number } {
  const derived = wholeSize(rollupPathOf(path));
  const bytes = wholeSize(path) + derived;
  return { share: derived / bytes, bytes };
}

function wholeSize(path: string): number {
  using db = new DatabaseSync(path);
  db.exec('pragma wal_checkpoint(truncate)');
  return statSync(path).size;
}

/** Resolves when every trace of a SQLite store is rolled up. */
export async function untilRolledUp(path: string): Promise<void> {
  using db = new DatabaseSync(path, { readOnly: true });
  db.prepare('attach ? as rollup_file').run(rollupPathOf(path));
  const behind = db.prepare(
    `select count(*) as teams from teams t join team_counters c on c.team_no = t.no
     left join rollup_file.roll_marks m on m.team_no = t.no and m.is_active = 1
     where c.last_seq > coalesce(m.seq, 0) or t.last_change_no > coalesce(m.change_no, 0)`,
  );
  await untilNoneIsBehind(async () => Number(behind.get()?.['teams']));
}

/** Holds the lock of the rollup file, so that the roller waits for it. Writes and reads go on. */
export function pauseRolling(path: string): () => void {
  const db = new DatabaseSync(rollupPathOf(path), { timeout: patienceMs });
  db.exec('begin immediate');
  return () => db.close();
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
