import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { runProgram } from './children.ts';

/** The checkout to compare with: a folder, or a commit of this repository, which is installed in a folder until the bench ends. */
export async function otherCheckout(against: string): Promise<string> {
  if (existsSync(join(against, 'server/bin/tracetally.js'))) return resolve(against);
  const here = (await git('rev-parse', '--show-toplevel')).trim();
  const commit = await git('rev-parse', '--verify', '--quiet', `${against}^{commit}`).catch(() => {
    throw new Error(`--against: "${against}" is neither a checkout of TraceTally nor a commit.`);
  });
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-other-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.stderr.write(`installing ${against} …\n`);
  await git('clone', '--quiet', '--shared', '--no-checkout', here, folder);
  await git('-C', folder, 'checkout', '--quiet', '--detach', commit.trim());
  await runProgram('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund']);
  return folder;
}

function git(...args: string[]): Promise<string> {
  return runProgram('git', args);
}
