import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cache = fileURLToPath(
  new URL('../../../node_modules/.cache/postgres-tests', import.meta.url),
);

/**
 * Makes the data folder of a new cluster. `initdb` takes a second of processor time, so it runs once per checkout; later clusters are
 * copies of its result. `madeOf` is everything that the result depends on.
 */
export function makeCluster(data: string, madeOf: readonly unknown[], initdb: () => void): void {
  const name = createHash('sha256').update(JSON.stringify(madeOf)).digest('hex').slice(0, 16);
  const template = join(cache, name);
  if (existsSync(template)) {
    copyWithOwners(template, data);
    return;
  }
  initdb();
  mkdirSync(cache, { recursive: true });
  const place = mkdtempSync(join(cache, 'new-'));
  try {
    const copy = join(place, 'data');
    copyWithOwners(data, copy);
    renameSync(copy, template);
  } catch (error) {
    // Files that run at the same time may each make one; the first is kept.
    if (!existsSync(template)) throw error;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** PostgreSQL accepts only a folder that belongs to its own user. */
function copyWithOwners(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the cluster could not be copied: ${stderr}`);
}
