import { rmSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { limits } from '../../limits.ts';

/**
 * The files of a database as they were when it was opened. SQLite goes on writing into a file that was removed or replaced
 * under it, and what it commits there is gone after a restart. So the files at these names are compared before a commit is
 * acknowledged: three calls of stat, some 5 µs.
 */
export interface OpenFiles {
  /** What has happened to them, as a sentence for operators; null if they are still the same. */
  changedBy(): string | null;
  /** Whether there is no room beside them: SQLite reports a full quota as any other failed write. */
  isOutOfRoom(): boolean;
}

/** The database itself, its log, and the index of the log, on which its locks are. */
const suffixes = ['', '-wal', '-shm'];

/** The log and its index exist as soon as a connection in WAL mode has read something. */
export function watchOpenFiles(path: string): OpenFiles {
  const files = suffixes.map((suffix) => {
    const name = `${path}${suffix}`;
    const identity = identityOf(name);
    if (identity === null) throw new Error(`${name} is missing though the database is open`);
    return { name, ...identity };
  });
  return {
    changedBy() {
      for (const { name, dev, ino } of files) {
        const now = identityOf(name);
        if (now?.dev === dev && now.ino === ino) continue;
        const what = now === null ? 'removed or cannot be accessed' : 'replaced';
        return `${name} was ${what} while the server was using it. Writes have stopped: restore the original files, then restart the server`;
      }
      return null;
    },
    isOutOfRoom: () => isOutOfRoom(`${path}.probe`),
  };
}

function isOutOfRoom(probe: string): boolean {
  try {
    writeFileSync(probe, Buffer.alloc(limits.roomProbeBytes));
    return false;
  } catch (error) {
    // By number: Node has no name for a full quota.
    const { errno = 0 } = error as NodeJS.ErrnoException;
    return -errno === constants.errno.EDQUOT || -errno === constants.errno.ENOSPC;
  } finally {
    removeQuietly(probe);
  }
}

/** A file that cannot be removed must not end the writer. */
function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is small, and the next probe overwrites it.
  }
}

/** It never throws: an error after a commit would count as one of the commit. */
function identityOf(name: string): { dev: bigint; ino: bigint } | null {
  try {
    const stat = statSync(name, { bigint: true, throwIfNoEntry: false });
    return stat ? { dev: stat.dev, ino: stat.ino } : null;
  } catch {
    return null;
  }
}
