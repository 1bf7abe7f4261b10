import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A Node.js on the PATH other than the one in node_modules: users of the client may have any supported version. */
export function nodeOfHost(): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = folders
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'))
    .find((path) => isExecutable(path));
  return found ?? process.execPath;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
