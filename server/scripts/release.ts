/**
 * `npm run release -- VERSION [--dry-run]`: sets the version, dates the changelog, builds the npm packages and the Python package from a
 * fresh clone of the last commit, tries them in empty folders, then publishes them and tags the commit. A dry run does everything but the last step and
 * changes nothing in the checkout.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installInEmptyFolder, npm, pack } from './pack.ts';
import type { Packed } from './pack.ts';
import { packPython, setPythonVersion } from './release-python.ts';
import type { PythonPackages } from './release-python.ts';
import {
  datedChangelog,
  isVersion,
  publicAddress,
  releasedLock,
  releasedManifest,
} from './release-texts.ts';
import { trySmoke } from './release-smoke.ts';

const checkout = fileURLToPath(new URL('../../', import.meta.url));
const published = ['server', 'client'] as const;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function git(folder: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
}

function readManifest(file: string): { name: string; version: string; workspaces: string[] } {
  return JSON.parse(readFileSync(join(checkout, file), 'utf8'));
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'dry-run': { type: 'boolean', default: false } },
  });
  const [version = readManifest('package.json').version, ...more] = positionals;
  if (!isVersion(version) || more.length > 0) {
    throw new Error('Usage: npm run release -- VERSION [--dry-run], with a version such as 1.2.3.');
  }
  return { version, isDryRun: values['dry-run'] };
}

/** Where the packages come from. npm publishes with provenance only if they name it. A dry run goes on without. */
function findRepository(isDryRun: boolean): string | null {
  const remotes = git(checkout, 'remote').split('\n');
  const remote = remotes.includes('origin') ? git(checkout, 'remote', 'get-url', 'origin') : '';
  const repository = publicAddress(remote);
  if (repository === null) {
    const problem = 'The packages name no source, since the remote "origin" is missing or a path.';
    if (!isDryRun) throw new Error(problem);
    say(problem);
  }
  return repository;
}

function checkCommitted(isDryRun: boolean): void {
  if (git(checkout, 'status', '--porcelain') === '') return;
  if (!isDryRun)
    throw new Error('Commit your changes first: packages are made from the last commit.');
  say('Changes that are not committed are not part of the packages.');
}

/** Sets the version and the date in a clone, and returns the files that have changed. */
async function prepare(
  clone: string,
  version: string,
  repository: string | null,
): Promise<string[]> {
  const { workspaces } = readManifest('package.json');
  const manifests = ['package.json', ...workspaces.map((folder) => `${folder}/package.json`)];
  const own = new Set(manifests.map((file) => readManifest(file).name));
  const change = (file: string, edit: (text: string) => string): void => {
    const path = join(clone, file);
    writeFileSync(path, edit(readFileSync(path, 'utf8')));
  };
  for (const file of manifests) {
    const source = { repository, directory: dirname(file) };
    change(file, (text) => releasedManifest(text, version, own, source));
  }
  change('package-lock.json', (text) => releasedLock(text, version, own));
  const today = new Date().toISOString().slice(0, 10);
  change('CHANGELOG.md', (text) => datedChangelog(text, version, today));
  setPythonVersion(clone, version);
  await npm(clone, ['ci', '--prefer-offline', '--no-audit', '--no-fund']);
  // The document contains the version.
  await npm(clone, ['run', '--silent', 'openapi']);
  return git(clone, 'diff', '--name-only').split('\n');
}

function describe(name: string, { files, size, unpackedSize }: Packed): void {
  const kb = (bytes: number): string => `${Math.round(bytes / 1024).toLocaleString('en')} KB`;
  say(`${name}: ${files.length} files, ${kb(size)}, unpacked ${kb(unpackedSize)}`);
}

/** A version such as 1.0.0-rc.1 is installed only by those who ask for it. */
function publishCommand(version: string, tarball: string): string[] {
  return ['publish', '--tag', version.includes('-') ? 'next' : 'latest', tarball];
}

async function packAndTry(clone: string, folder: string, version: string): Promise<string[]> {
  const tarballs: string[] = [];
  for (const name of published) {
    const packed = await pack(join(clone, name), folder);
    describe(name, packed);
    tarballs.push(packed.path);
    // Fails if npm would refuse the package. npm also asks for the last release, and would wait a minute for a registry without one.
    const asked = [...publishCommand(version, packed.path), '--dry-run', '--fetch-retries=0'];
    await npm(folder, asked);
  }
  const empty = join(folder, 'empty');
  const { packages, megabytes } = await installInEmptyFolder(empty, tarballs);
  say(`installed: ${packages} packages, ${megabytes.toFixed(0)} MB, most of it Node.js`);
  for (const step of await trySmoke(empty)) say(`tried: ${step}`);
  const left = git(clone, 'status', '--porcelain');
  if (left !== '') throw new Error(`The build changed files that are not ignored:\n${left}`);
  return tarballs;
}

/** If this fails, nothing is published, or it says what is left to do. */
async function publish(
  clone: string,
  tarballs: readonly string[],
  version: string,
  python: PythonPackages,
): Promise<void> {
  const commands = tarballs.map((tarball) => publishCommand(version, tarball));
  const upload = `python3 -m twine upload ${python.files.join(' ')}`;
  const pull = `git pull --ff-only --tags ${clone} HEAD`;
  for (const [i, command] of commands.entries()) {
    try {
      await npm(clone, command);
    } catch (cause) {
      if (i === 0) throw cause;
      const rest = commands.slice(i).map((words) => ['npm', ...words].join(' '));
      throw new HalfPublished([...rest, upload, pull].join(' && '), cause);
    }
    say(`published: ${basename(tarballs[i] ?? '')}`);
  }
  try {
    python.publish();
  } catch (cause) {
    throw new HalfPublished([upload, pull].join(' && '), cause);
  }
  git(checkout, 'pull', '--quiet', '--ff-only', '--tags', clone, 'HEAD');
  say(`Now run: git push --follow-tags`);
}

class HalfPublished extends Error {
  constructor(rest: string, cause: unknown) {
    super(`Only some packages are published. Solve the problem, then run: ${rest}`, { cause });
  }
}

async function main(): Promise<void> {
  const { version, isDryRun } = readOptions();
  checkCommitted(isDryRun);
  const repository = findRepository(isDryRun);
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-release-'));
  let isNeeded = false;
  try {
    const clone = join(folder, 'clone');
    git(checkout, 'clone', '--quiet', '--no-hardlinks', checkout, clone);
    const changed = await prepare(clone, version, repository);
    say(`version ${version}: ${changed.join(', ')}`);
    git(clone, 'commit', '--quiet', '--message', `Release ${version}`, ...changed);
    git(clone, 'tag', '--annotate', '--message', `Release ${version}`, `v${version}`);
    const tarballs = await packAndTry(clone, folder, version);
    const python = packPython(clone, folder, version);
    say(
      `Python: ${python.files.map((file) => basename(file)).join(', ')}, tried in an empty environment`,
    );
    if (isDryRun) say('Not published: this was a dry run.');
    else await publish(clone, tarballs, version, python);
  } catch (error) {
    isNeeded = error instanceof HalfPublished;
    throw error;
  } finally {
    if (!isNeeded) rmSync(folder, { recursive: true, force: true });
  }
}

await main();
