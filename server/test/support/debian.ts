import { spawnSync } from 'node:child_process';

/**
 * A program that a test needs from Debian: found, or installed if possible. Returns null when it is there, else the reason
 * why the test cannot run, to be shown.
 */
export function needProgram(program: string, debianPackage: string = program): string | null {
  const isRoot = process.getuid?.() === 0;
  if (!isRoot)
    return isThere(program)
      ? null
      : `needs ${program} (Debian package ${debianPackage}), and root to install it`;
  // Several test files may need a program at once. The lock also waits for one that is being installed, which may be there in part.
  const args = [lockFile, 'sh', '-c', install, 'sh', program, debianPackage];
  const { status } = spawnSync('flock', args, { env: environment, stdio: 'ignore' });
  if (status !== 0) return `needs ${program}, and apt-get could not install ${debianPackage}`;
  return isThere(program) ? null : `needs ${program}, which ${debianPackage} did not bring`;
}

const lockFile = '/tmp/tracetally-install.lock';

const install = 'command -v "$1" || { apt-get update -qq && apt-get install -y -qq "$2"; }';

// In this run level no package starts a service of its own, such as a web server on port 80.
const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };

function isThere(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}
