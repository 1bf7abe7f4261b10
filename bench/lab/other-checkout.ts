import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { runProgram } from './children.ts';

/** Two checkouts that are measured in the same run. */
export interface ComparedCheckouts {
  /** Null for this one. */
  of: string | null;
  against: string;
}

export async function comparedCheckouts(
  against: string | undefined,
  of: string | undefined,
): Promise<ComparedCheckouts | null> {
  if (against === undefined) {
    if (of === undefined) return null;
    throw new Error('--of needs --against: the checkout or commit to compare with.');
  }
  return {
    of: of === undefined ? null : await checkoutAt('--of', of),
    against: await checkoutAt('--against', against),
  };
}

/** A folder, or a commit of this repository, which is installed in a folder until the bench ends. */
async function checkoutAt(flag: string, name: string): Promise<string> {
  if (existsSync(join(name, 'server/bin/tracetally.js'))) return resolve(name);
  const here = (await git('rev-parse', '--show-toplevel')).trim();
  const commit = await git('rev-parse', '--verify', '--quiet', `${name}^{commit}`).catch(() => {
    throw new Error(`${flag}: "${name}" is neither a checkout of TraceTally nor a commit.`);
  });
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-other-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.stderr.write(`installing ${name} …\n`);
  await git('clone', '--quiet', '--shared', '--no-checkout', here, folder);
  await git('-C', folder, 'checkout', '--quiet', '--detach', commit.trim());
  await runProgram('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund']);
  return folder;
}

function git(...args: string[]): Promise<string> {
  return runProgram('git', args);
}
