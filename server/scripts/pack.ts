/** Packs a package, and installs tarballs in an empty folder as a stranger would, with the Node.js of the host. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { builderEnvironment, quietly, runToEnd } from '../../client/test/support/stranger.ts';

export interface Packed {
  path: string;
  /** In the tarball, such as `dist/main.js`. */
  files: readonly string[];
  /** Compressed and unpacked, in bytes. */
  size: number;
  unpackedSize: number;
}

/** Runs npm as the builder of packages, and returns what it printed. */
export async function npm(cwd: string, args: readonly string[]): Promise<string> {
  return (await runToEnd('npm', args, { cwd, env: builderEnvironment })).stdout;
}

/** Builds and packs the package in `folder`. The tarball is put into another folder. */
export async function pack(folder: string, into: string): Promise<Packed> {
  const args = ['pack', '--json', '--pack-destination', into];
  const printed = await npm(folder, args);
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
  const here = { cwd: folder };
  await runToEnd('npm', ['install', ...quietly, ...tarballs], here);
  const { stdout: listed } = await runToEnd('npm', ['ls', '--all', '--parseable'], here);
  const { stdout: used } = await runToEnd('du', ['-sk', 'node_modules'], here);
  // The first line is the folder itself.
  const packages = new Set(listed.trim().split('\n').slice(1)).size;
  return { packages, megabytes: Number.parseInt(used, 10) / 1024 };
}
