import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/errors.ts';

/** A memory limit for one process. Without a cgroup the limit is only watched from outside. */
export interface MemoryLimit {
  kind: 'cgroup v1' | 'cgroup v2' | 'watched';
  /** Why there is no cgroup. */
  reason: string | null;
  /** A program in front of the service that puts the service into the cgroup; empty without one. */
  wrapper: readonly string[];
  /** The most that the cgroup ever held, page cache included; null without one. */
  peakBytes(): number | null;
  /** How often the kernel killed a process of the cgroup for its memory. */
  outOfMemoryKills(): number;
  remove(): void;
}

interface Version {
  kind: 'cgroup v1' | 'cgroup v2';
  mountTypes: RegExp;
  /** The line of /proc/self/cgroup that names the own group. */
  membership: RegExp;
  limitFile: string;
  /** Limits memory and swap together, if the kernel counts swap. */
  swapFile: string;
  swapLimit: (bytes: number) => number;
  peakFile: string;
  killsFile: string;
}

const versions: readonly Version[] = [
  {
    kind: 'cgroup v2',
    mountTypes: /^\S+ (\S+) cgroup2 /m,
    membership: /^0::(.*)$/m,
    limitFile: 'memory.max',
    swapFile: 'memory.swap.max',
    swapLimit: () => 0,
    peakFile: 'memory.peak',
    killsFile: 'memory.events',
  },
  {
    kind: 'cgroup v1',
    mountTypes: /^\S+ (\S+) cgroup \S*\bmemory\b/m,
    membership: /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m,
    limitFile: 'memory.limit_in_bytes',
    swapFile: 'memory.memsw.limit_in_bytes',
    swapLimit: (bytes) => bytes,
    peakFile: 'memory.max_usage_in_bytes',
    killsFile: 'memory.oom_control',
  },
];

export function openMemoryLimit(bytes: number): MemoryLimit {
  const reasons: string[] = [];
  for (const version of versions) {
    try {
      return cgroupLimit(version, bytes);
    } catch (error) {
      reasons.push(`${version.kind}: ${messageOf(error)}`);
    }
  }
  return {
    kind: 'watched',
    reason: reasons.join('; '),
    wrapper: [],
    peakBytes: () => null,
    outOfMemoryKills: () => 0,
    remove() {},
  };
}

/** Below the own group, so that whatever limits this process also limits the service. */
function cgroupLimit(version: Version, bytes: number): MemoryLimit {
  const mount = version.mountTypes.exec(readFileSync('/proc/mounts', 'utf8'))?.[1];
  const own = version.membership.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  if (mount === undefined || own === undefined) throw new Error('not mounted');
  const folder = join(mount, own, `tracetally-soak-${process.pid}`);
  mkdirSync(folder);
  try {
    // The kernel makes the files. A file that has to be created means that there is no memory controller here.
    writeFileSync(join(folder, version.limitFile), String(bytes), { flag: 'r+' });
    if (existsSync(join(folder, version.swapFile))) {
      const limit = String(version.swapLimit(bytes));
      writeFileSync(join(folder, version.swapFile), limit, { flag: 'r+' });
    }
  } catch (error) {
    rmdirSync(folder);
    throw error;
  }
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
  return {
    kind: version.kind,
    reason: null,
    wrapper: ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(folder, 'cgroup.procs')],
    peakBytes: () => Number(read(version.peakFile)),
    outOfMemoryKills: () => Number(/^oom_kill (\d+)$/m.exec(read(version.killsFile))?.[1] ?? 0),
    remove: () => rmdirSync(folder),
  };
}

/** The memory of a process as the kernel reports it; null after its end. */
export function residentBytes(pid: number): { now: number; peak: number } | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const bytes = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024;
    const memory = { now: bytes('VmRSS'), peak: bytes('VmHWM') };
    return memory.peak === 0 ? null : memory;
  } catch {
    return null;
  }
}
