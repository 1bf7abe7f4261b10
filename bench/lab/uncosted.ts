import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollupPathOf } from '../../server/src/store/sqlite/rollup-file.ts';
import { runProgram } from './children.ts';
import type { Lab } from './lab.ts';

/** Copies a SQLite file of traces without a cost that is kept for the next run. Returns an API key. */
export async function copyUncosted(
  lab: Lab,
  path: string,
  traces: number,
  checkout: string | null = null,
): Promise<string> {
  const kept = lab.dataFile(`uncosted-${traces}${checkout === null ? '' : '-before'}.db`);
  const keyFile = `${kept}.key`;
  if (!existsSync(keyFile)) {
    lab.say(`  filling a database with ${traces.toLocaleString('en')} traces without a cost …`);
    const root = checkout ?? fileURLToPath(new URL('../../', import.meta.url));
    const program = join(root, 'bench/lab/fill-uncosted.ts');
    const key = await runProgram(process.execPath, [program, kept, String(traces)]);
    writeFileSync(keyFile, key);
  }
  copyFileSync(kept, path);
  // An older checkout has one file. The log of a rollup file may stay when the store is closed.
  for (const suffix of ['', '-wal']) {
    const rollups = `${rollupPathOf(kept)}${suffix}`;
    if (existsSync(rollups)) copyFileSync(rollups, `${rollupPathOf(path)}${suffix}`);
  }
  return readFileSync(keyFile, 'utf8').trim();
}
