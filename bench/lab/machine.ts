import { execFileSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';

/** What the figures depend on besides the code. */
export interface Machine {
  cpu: string;
  cores: number;
  memoryGb: number;
  arch: string;
  node: string;
  /** Median time to sync 64 KB to disk, in ms. Every commit waits for a sync. */
  syncMs: number;
}

export function describeMachine(syncMs: number): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    arch: process.arch,
    node: process.version,
    syncMs,
  };
}

/** After the name of a commit if files have changed since. */
export const changedMark = '+';

/** The commit that was measured, marked if files have changed since. Results of other runs are no change. */
export function currentCommit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { encoding: 'utf8' }).trimEnd();
  return (
    git('rev-parse', '--short', 'HEAD') +
    (areChanged(git('status', '--porcelain')) ? changedMark : '')
  );
}

function areChanged(status: string): boolean {
  const isResult = (line: string): boolean =>
    /^.{2} (bench\/results\/|docs\/performance\.md$|docs\/images\/performance\.svg$)/.test(line);
  return status.split('\n').some((line) => line !== '' && !isResult(line));
}
