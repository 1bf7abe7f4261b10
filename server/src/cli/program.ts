import { basename, dirname, join, relative, sep } from 'node:path';
import type { readStart } from '../config.ts';
import { shellWord } from './shell-words.ts';

/** How to start this program again from the same shell and folder, ready to be pasted. */
export interface Program {
  /** Stands before the name of a command. */
  run: string;
  /** Starts the server; stands before its flags. */
  serve: string;
}

/** What is known about how this process was started. */
export interface Start extends Omit<ReturnType<typeof readStart>, 'launcher'> {
  /** As typed or found by the shell: `node`, or a path. */
  node: string;
  /** The absolute path of the script, which may be a link to the launcher. */
  script: string;
  folder: string;
}

const launcherInCheckout = join('server', 'bin', 'tracetally.js');

export function programOf(start: Start): Program {
  const { script, npm } = start;
  if (npm !== null && script === join(npm.packageFolder, launcherInCheckout)) {
    // npm finds the package from any folder inside it; from elsewhere it was started with --prefix.
    const prefix = isInside(npm.shellFolder, npm.packageFolder)
      ? ''
      : ` --prefix ${shellWord(npm.packageFolder)}`;
    return { run: `npm run -s${prefix} tracetally --`, serve: `npm start${prefix} --` };
  }
  const run = startOf(start);
  return { run, serve: `${run} serve` };
}

function startOf({ node, script, folder, searchPath }: Start): string {
  const name = basename(script);
  const shown = isInside(script, folder) ? relative(folder, script) : script;
  if (name.endsWith('.js')) return `${shellWord(node)} ${shellWord(shown)}`;
  // npm puts this folder on the search path only while one of its scripts runs.
  if (dirname(script).endsWith(join('node_modules', '.bin'))) return `npx ${name}`;
  return searchPath.includes(dirname(script)) ? name : shellWord(script);
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}${sep}`);
}
