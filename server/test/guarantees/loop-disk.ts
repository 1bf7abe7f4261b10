import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** An ext4 file system in a file, whose power can be cut. Needs root and loop devices. */
export interface LoopDisk {
  path: string;
  /** From this moment nothing more reaches the disk, not even what the kernel still holds: FS_IOC_SHUTDOWN without a flush. */
  cutPower(): void;
  /** Unmounts the dead file system and mounts what is really on the disk. */
  remount(): void;
  remove(): void;
}

const shutdown =
  'open(my $dir, "<", $ARGV[0]) or die "open: $!"; my $flags = pack("L", 2); ioctl($dir, 0x8004587d, $flags) or die "ioctl: $!";';

/** The disk, or the reason why it cannot be had here. */
export function makeLoopDisk(folder: string, mib: number): LoopDisk | { reason: string } {
  const image = join(folder, 'disk.img');
  const path = join(folder, 'disk');
  mkdirSync(path);
  if (process.getuid?.() !== 0) return { reason: 'needs root to mount a file system' };
  const steps: [string, ...string[]][] = [
    ['truncate', '-s', `${mib}M`, image],
    ['mkfs.ext4', '-q', '-F', image],
    ['mount', '-o', 'loop', image, path],
  ];
  for (const [program, ...args] of steps) {
    const problem = run(program, ...args);
    if (problem !== null) return { reason: `cannot make a file system here: ${problem}` };
  }
  return {
    path,
    cutPower: () => must('perl', '-e', shutdown, path),
    remount() {
      must('umount', path);
      must('mount', '-o', 'loop', image, path);
    },
    remove: () => void run('umount', path),
  };
}

function must(program: string, ...args: string[]): void {
  const problem = run(program, ...args);
  if (problem !== null) throw new Error(problem);
}

function run(program: string, ...args: string[]): string | null {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? null : `${program}: ${error?.message ?? stderr.trim()}`;
}
