import { spawnSync } from 'node:child_process';

/**
 * A program that a test needs from Debian: found, or installed if possible. Returns null when it is there, else the reason
 * why the test cannot run, to be shown.
 */
export function needProgram(program: string, debianPackage: string = program): string | null {
  if (isThere(program)) return null;
  if (process.getuid?.() !== 0)
    return `needs ${program} (Debian package ${debianPackage}), and root to install it`;
  // In this run level no package starts a service of its own, such as a web server on port 80.
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', debianPackage],
  ]) {
    const { status } = spawnSync('apt-get', args, { env: environment, stdio: 'ignore' });
    if (status !== 0) return `needs ${program}, and apt-get ${args[0]} failed`;
  }
  return isThere(program) ? null : `needs ${program}, which ${debianPackage} did not bring`;
}

function isThere(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}
