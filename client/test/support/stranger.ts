/** Runs programs to their end: as a stranger would, who has the Node.js of the host and nothing of the checkout, or as a builder. */
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { delimiter, dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { nodeOfHost } from './node-of-host.ts';

const { PATH = '', HOME = tmpdir(), npm_config_cache } = process.env;
const npmSettings = { HOME, ...(npm_config_cache && { npm_config_cache }) };

/** Nothing of the checkout is on the search path. */
export const strangerEnvironment: NodeJS.ProcessEnv = {
  ...npmSettings,
  PATH: [dirname(nodeOfHost()), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
};

/** Packages are built with the Node.js that runs this. */
export const builderEnvironment: NodeJS.ProcessEnv = {
  ...npmSettings,
  PATH: [dirname(process.execPath), PATH].join(delimiter),
};

/** Options of `npm install` that leave out what only people read. */
export const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier'];

export interface Printed {
  stdout: string;
  stderr: string;
}

/** Runs a program to its end, and returns what it printed. Rejects if it fails. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  { cwd, env = strangerEnvironment }: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<Printed> {
  const child = spawn(command, args, { cwd, env, timeout: 600_000 });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const status = await ended;
  if (status === 0) return { stdout, stderr };
  throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
}
