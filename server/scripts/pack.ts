/** Packs a package, and installs tarballs in an empty folder as a stranger would, with the Node.js of the host. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { nodeOfHost } from '../../client/test/support/node-of-host.ts';

export interface Packed {
  path: string;
  /** In the tarball, such as `dist/main.js`. */
  files: readonly string[];
  /** Compressed and unpacked, in bytes. */
  size: number;
  unpackedSize: number;
}

const { PATH = '', HOME = tmpdir(), npm_config_cache } = process.env;
const npmSettings = { HOME, ...(npm_config_cache && { npm_config_cache }) };

/** Nothing of the checkout is on the search path. */
export const strangerEnvironment: NodeJS.ProcessEnv = {
  ...npmSettings,
  PATH: [dirname(nodeOfHost()), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
};

/** Packages are built with the Node.js that runs this. */
const builderEnvironment: NodeJS.ProcessEnv = {
  ...npmSettings,
  PATH: [dirname(process.execPath), PATH].join(delimiter),
};

/** Runs a program to its end, and returns what it printed. Rejects if it fails. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  { cwd, env = builderEnvironment }: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<string> {
  const child = spawn(command, args, { cwd, env, timeout: 600_000 });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const status = await ended;
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
}

/** Builds and packs the package in `folder`. The tarball is put into another folder. */
export async function pack(folder: string, into: string): Promise<Packed> {
  const args = ['pack', '--json', '--pack-destination', into];
  const printed = await runToEnd('npm', args, { cwd: folder });
  const report: unknown = JSON.parse(printed.slice(printed.search(/^[[{]/m)));
  // Newer versions of npm print an object with the package's name.
  const [one] = Object.values(report as Record<string, PackReport>);
  if (!one) throw new Error(`npm pack printed no report: ${printed}`);
  const { filename, files, size, unpackedSize } = one;
  return { path: join(into, filename), files: files.map(({ path }) => path), size, unpackedSize };
}

interface PackReport {
  filename: string;
  files: { path: string }[];
  size: number;
  unpackedSize: number;
}

export interface Installed {
  /** All packages, with those that others need. */
  packages: number;
  megabytes: number;
}

export async function installInEmptyFolder(
  folder: string,
  tarballs: readonly string[],
): Promise<Installed> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier'];
  const stranger = { cwd: folder, env: strangerEnvironment };
  await runToEnd('npm', ['install', ...quietly, ...tarballs], stranger);
  const listed = await runToEnd('npm', ['ls', '--all', '--parseable'], stranger);
  const used = await runToEnd('du', ['-sk', 'node_modules'], stranger);
  // The first line is the folder itself.
  const packages = new Set(listed.trim().split('\n').slice(1)).size;
  return { packages, megabytes: Number.parseInt(used, 10) / 1024 };
}
