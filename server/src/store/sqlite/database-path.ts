import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../../errors.ts';

/**
 * The resolved path of a database file. SQLite's log and the server's lock are named after the path, so a second path to the same
 * file would have its own lock. A link to a file that does not exist yet resolves to the path of that file.
 */
export function realDatabasePath(path: string): string {
  let at = path;
  for (let links = 0; links < linksMax; links++) {
    const folder = existsSync(dirname(at)) ? realpathSync(dirname(at)) : dirname(at);
    const name = join(folder, basename(at));
    if (lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return name;
    at = resolve(folder, readlinkSync(name));
    if (!existsSync(dirname(at))) {
      throw new OperatorError(
        `${path} is a symbolic link to ${at}, but the folder ${dirname(at)} does not exist.`,
      );
    }
  }
  throw new OperatorError(
    `${path} is a symbolic link that leads to itself, or a chain of too many links.`,
  );
}

/** The same limit as in Linux. */
const linksMax = 40;

/** A hard link cannot be distinguished from the file itself, so a file with several names is never opened. */
export function refuseSecondName(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.nlink <= 1) return;
  throw new OperatorError(
    `${path} has ${stat.nlink} names (hard links). SQLite's log is named after the file, so opening it under two names would damage it. ` +
      'Remove the other names, or use a copy that was made while no server was running.',
  );
}
