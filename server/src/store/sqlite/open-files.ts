import { rmSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { limits } from '../../limits.ts';

/**
 * The files of a database as they were when it was opened. SQLite continues to write to a file that was removed or replaced,
 * and such commits are lost after a restart. So the files are compared before each commit is acknowledged. This takes three
 * stat calls, about 5 µs.
 */
export interface OpenFiles {
  /** Describes for operators how the files have changed; null if they have not. */
  changedBy(): string | null;
  /** Whether the disk or a quota is full: SQLite reports a full quota like any other failed write. */
  isOutOfRoom(): boolean;
}

/** The database, its log, and the index of the log, which also holds the locks. */
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
        const what = now === null ? 'removed or made inaccessible' : 'replaced';
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
    // By number, since Node has no name for this error.
    const { errno = 0 } = error as NodeJS.ErrnoException;
    return -errno === constants.errno.EDQUOT || -errno === constants.errno.ENOSPC;
  } finally {
    removeQuietly(probe);
  }
}

/** A file that cannot be removed must not stop the writer. */
function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is small, and the next probe overwrites it.
  }
}

/** It never throws: an error after a commit would look like a failed commit. */
function identityOf(name: string): { dev: bigint; ino: bigint } | null {
  try {
    const stat = statSync(name, { bigint: true, throwIfNoEntry: false });
    return stat ? { dev: stat.dev, ino: stat.ino } : null;
  } catch {
    return null;
  }
}
