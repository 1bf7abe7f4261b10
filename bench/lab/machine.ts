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

/** The commit that was measured, with a `+` if files have changed since. */
export function currentCommit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+');
}
