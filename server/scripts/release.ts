/**
 * `npm run release -- VERSION [--dry-run]`: sets the version, dates the changelog, packs both packages from a fresh clone of the last
 * commit, tries the tarballs in an empty folder, then publishes them and tags the commit. A dry run does everything but the last step and
 * changes nothing in the checkout.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installInEmptyFolder, pack, runToEnd } from './pack.ts';
import type { Packed } from './pack.ts';
import { datedChangelog, isVersion, withRelease } from './release-texts.ts';
import { trySmoke } from './release-smoke.ts';

const checkout = fileURLToPath(new URL('../../', import.meta.url));
const packages = ['server', 'client'] as const;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function git(folder: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
}

/** Where the packages come from. npm publishes with provenance only if it knows. */
function repositoryUrl(): string | null {
  try {
    return git(checkout, 'remote', 'get-url', 'origin');
  } catch {
    return null;
  }
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'dry-run': { type: 'boolean', default: false } },
  });
  const manifest = readFileSync(join(checkout, 'server/package.json'), 'utf8');
  const present = (JSON.parse(manifest) as { version: string }).version;
  const [version = present, ...more] = positionals;
  if (!isVersion(version) || more.length > 0) {
    throw new Error('Usage: npm run release -- VERSION [--dry-run], with a version such as 1.2.3.');
  }
  return { version, isDryRun: values['dry-run'] };
}

/** Sets the version and the date in a clone, and returns the files that have changed. */
function prepare(clone: string, version: string, repository: string | null): string[] {
  const today = new Date().toISOString().slice(0, 10);
  const change = (file: string, edit: (text: string) => string): string => {
    const path = join(clone, file);
    writeFileSync(path, edit(readFileSync(path, 'utf8')));
    return file;
  };
  const manifests = [...packages.map((name) => `${name}/package.json`), 'package.json'];
  return [
    ...manifests.map((file) =>
      change(file, (text) =>
        withRelease(text, version, file.includes('/') ? repository : null, file),
      ),
    ),
    change('CHANGELOG.md', (text) => datedChangelog(text, version, today)),
  ];
}

function describe(name: string, { files, size, unpackedSize }: Packed): void {
  const kb = (bytes: number): string => `${Math.round(bytes / 1024).toLocaleString('en')} KB`;
  say(`${name}: ${files.length} files, ${kb(size)}, unpacked ${kb(unpackedSize)}`);
}

async function main(): Promise<void> {
  const { version, isDryRun } = readOptions();
  const repository = repositoryUrl();
  if (git(checkout, 'status', '--porcelain') !== '') {
    if (!isDryRun)
      throw new Error('Commit your changes first: packages are made from the last commit.');
    say('Changes that are not committed are not part of the packages.');
  }
  if (repository === null) {
    if (!isDryRun)
      throw new Error('There is no remote "origin", which the packages name as their source.');
    say('There is no remote "origin", so the packages do not name their source.');
  }
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-release-'));
  try {
    const clone = join(folder, 'clone');
    git(checkout, 'clone', '--quiet', '--no-hardlinks', checkout, clone);
    const changed = prepare(clone, version, repository);
    say(`version ${version}: ${changed.join(', ')}`);
    await runToEnd('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: clone });
    const tarballs: string[] = [];
    for (const name of packages) {
      const packed = await pack(join(clone, name), folder);
      describe(name, packed);
      tarballs.push(packed.path);
    }
    const empty = join(folder, 'empty');
    const { packages: count, megabytes } = await installInEmptyFolder(empty, tarballs);
    say(`installed: ${count} packages, ${megabytes.toFixed(0)} MB, most of it Node.js`);
    for (const step of await trySmoke(empty)) say(`tried: ${step}`);
    if (isDryRun) {
      say('Not published: this was a dry run.');
      return;
    }
    git(clone, 'commit', '--quiet', '--message', `Release ${version}`, ...changed);
    git(clone, 'tag', `v${version}`);
    git(checkout, 'pull', '--quiet', '--ff-only', '--tags', clone, 'HEAD');
    for (const tarball of tarballs) await runToEnd('npm', ['publish', tarball], { cwd: clone });
    say(`Published. Now run: git push --follow-tags`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
